import type { PackedCounts } from '../../gateway/usage/store/counts.ts';
import type { Fields } from '../../gateway/usage/store/usage-store.ts';

const hours = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, '0'));

type Field = readonly [name: string, counts: PackedCounts];

/**
 * The counts for each minute of an hour. Each minute has a number and a count. The list contains the distance of each number from the
 * previous number, followed by the count. The first distance is 1, and each later distance is `apart`.
 */
function everyMinute(apart: number): PackedCounts {
  return Array.from({ length: 60 }, (_, minute) => [minute === 0 ? 1 : apart, 20]).flat();
}

/** The record of a key that sent requests in every minute of a day (`record-fields.ts`). */
export function usageFields(): Fields {
  return new Map<string, PackedCounts>([
    ...hours.map((hour): Field => [`minutes:${hour}`, everyMinute(8)]),
    ['hours', [0, 86_399_000, ...hours.flatMap(() => [1, 1_200, 1, 1_200])]],
  ]);
}

/** The record of a day with requests in every minute. */
export function trafficFields(): Fields {
  return new Map(
    hours.flatMap((hour): Field[] => [
      [`ended:${hour}`, everyMinute(8)],
      [`own:${hour}`, everyMinute(20)],
      [`upstream:${hour}`, everyMinute(20)],
    ]),
  );
}
