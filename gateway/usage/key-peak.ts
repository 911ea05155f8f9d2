import type { Counts } from './store/counts.ts';
import { outcomesMax } from './tally.ts';

/** How much a key asked for in a period. */
export interface KeyPeak {
  /** Requests of its busiest minute. */
  readonly busiestMinute: number;
  readonly offered: number;
  readonly admitted: number;
}

const minutesPerHour = 60;

export const noPeak: KeyPeak = { busiestMinute: 0, offered: 0, admitted: 0 };

/**
 * Adds the minutes of one hour (`minutes:<hour>` in `record-fields.ts`), from the first to the last place in it. Without an
 * object for each minute, since a list of keys has millions of them.
 */
export function addHour(peak: KeyPeak, counts: Counts, firstPlace: number, lastPlace: number): KeyPeak {
  let { busiestMinute, offered, admitted } = peak;
  const byMinute = Array<number>(minutesPerHour).fill(0);
  for (const [number, requests] of counts) {
    const place = Math.floor((number - 1) / outcomesMax);
    if (place < Math.max(0, firstPlace) || place > lastPlace || place >= minutesPerHour) continue;
    const offeredHere = (byMinute[place] ?? 0) + requests;
    byMinute[place] = offeredHere;
    if (offeredHere > busiestMinute) busiestMinute = offeredHere;
    offered += requests;
    if ((number - 1) % outcomesMax === 0) admitted += requests;
  }
  return { busiestMinute, offered, admitted };
}
