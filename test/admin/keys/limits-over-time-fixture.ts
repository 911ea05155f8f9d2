import { limitsOverTime } from '../../../gateway/admin/keys/over-time/limits-over-time.ts';
import type { RecordedChange } from '../../../gateway/fleet/changes.ts';
import { toLimits } from '../../../gateway/keys/limits/limit-fields.ts';
import { compilePlans } from '../../../gateway/keys/plans/plans.ts';

export const at = (time: string) => `2026-11-24T${time}:00.000Z`;
export const change = (time: string, members: object) =>
  ({ id: time, at: at(time), process: 'p', processes: 1, by: 'alice', ...members }) as RecordedChange;
export const reload = (time: string, limitsBefore: object) =>
  change(time, { action: 'reload', before: 'a', after: 'b', limitsBefore });
export const ofKey = (time: string, action: string, members: object = {}) =>
  change(time, { action, key: 'acme', ...members });
export const granted = (perMinute: number, until: string, from?: string) => ({
  limits: { perMinute },
  ...(from && { fromAt: at(from) }),
  untilAt: at(until),
});

const plans = compilePlans({
  free: { custom: false, perMinute: 50, perDay: 900 },
  pro: { custom: false, perMinute: 500 },
  own: { custom: true },
  dated: {
    custom: false,
    perMinute: 10,
    changes: [
      { from: Date.parse(at('08:00')), perMinute: 20 },
      { from: Date.parse(at('13:00')), perMinute: 30 },
      { from: Date.parse(at('23:00')), perMinute: 40 },
    ],
  },
});
export const free = { id: 'acme', plan: 'free', limits: toLimits({ perMinute: 50, perDay: 900 }) };
export const own = { id: 'acme', plan: 'own', limits: toLimits({ perMinute: 7 }) };

/** A row of the tables: the key now, its recorded changes in their order, and the time and limit of each step. */
export type LimitsRow = [
  name: string,
  key: typeof free,
  changes: RecordedChange[],
  steps: (number | string | undefined)[],
  stated?: Parameters<typeof limitsOverTime>[0]['stated'],
];

/** The limits a minute of a key from 10:00 to 15:00, each after its time. */
export function minuteLimits(key: typeof free, changes: readonly RecordedChange[], stated?: LimitsRow[4]) {
  const found = limitsOverTime({
    key,
    stated,
    plans,
    grant: undefined,
    planStates: undefined,
    changes: changes.toReversed(),
    fromMs: Date.parse(at('10:00')),
    toMs: Date.parse(at('15:00')),
  });
  return found.flatMap(({ fromAt, limits }) => [fromAt.slice(11, 16), limits.perMinute]);
}
