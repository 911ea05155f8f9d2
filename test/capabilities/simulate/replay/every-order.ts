import fc from 'fast-check';
import { replayKey } from '../../../../gateway/capabilities/simulate/replay/replay-key.ts';
import { decideKey } from '../../../../gateway/quota/decide-key.ts';
import { emptyQuotaState, type QuotaState } from '../../../../gateway/quota/hash.ts';
import type { BanPolicy, Limits } from '../../../../gateway/shared/model.ts';
import { KeyMinutesBuilder } from '../../../../gateway/usage/read/key-minutes.ts';
import { oneRun } from '../../../support/one-run.ts';
import { bans, calendar, editedOnce, limits, minuteMs } from './twin-keys.ts';

/**
 * The costs of the requests in each minute, and the edited limits. Before the edit, the limits refuse no request.
 */
interface Orders {
  readonly minutes: readonly { readonly pauseMinutes: number; readonly costs: readonly number[] }[];
  /** The time between two requests in the same minute. */
  readonly spaceMs: number;
  readonly after: Limits;
  readonly bans: BanPolicy;
}

const minute = fc.record({
  pauseMinutes: fc.constantFrom(1, 1, 2, 60, 1_440),
  costs: fc.array(fc.constantFrom(0, 1, 1, 2, 5), { minLength: 1, maxLength: 4 }),
});

export const orders: fc.Arbitrary<Orders> = fc.record({
  minutes: fc.array(minute, { minLength: 1, maxLength: 3 }),
  spaceMs: fc.constantFrom(0, 400, 10_000),
  after: limits,
  bans,
});

/**
 * Returns the verdict of the simulator, and the possible numbers of refused requests over all orders of the requests.
 */
export function everyOrder({ minutes, spaceMs, after, bans }: Orders) {
  const builder = new KeyMinutesBuilder();
  let number = Math.floor(Date.UTC(2026, 1, 28, 23) / minuteMs);
  const placed = minutes.map(({ pauseMinutes, costs }) => {
    number += pauseMinutes;
    for (const units of costs) builder.add(number, 0, 1, Math.max(0, units - 1), units === 0 ? 1 : 0);
    return { number, costs };
  });
  const before: Limits = after.map(({ window }) => ({ window, max: 1_000 }));
  const verdict = replayKey(
    { minutes: builder.finish(), fromMinute: 0, ...editedOnce(before, after, bans) },
    calendar,
  );
  const refused = new Set<number>();
  follow(emptyQuotaState, 0, 0);
  return { ...verdict, refused };

  function follow(state: QuotaState, place: number, sum: number): void {
    const here = placed[place];
    if (here === undefined) {
      refused.add(sum);
      return;
    }
    for (const order of permutations(here.costs)) {
      let next = state;
      let admitted = 0;
      for (const [index, units] of order.entries()) {
        const call = { keyId: '', limits: after, bans, runs: oneRun(1, units) };
        const nowMs = here.number * minuteMs + index * spaceMs;
        const outcome = decideKey(next, call, calendar.windowsMs, nowMs);
        next = outcome.state;
        admitted += outcome.admitted;
      }
      follow(next, place + 1, sum + order.length - admitted);
    }
  }
}

/** Lists all distinct orders of the given costs. */
function permutations(costs: readonly number[]): readonly (readonly number[])[] {
  if (costs.length === 0) return [[]];
  return [...new Set(costs)].flatMap((first) =>
    permutations(costs.toSpliced(costs.indexOf(first), 1)).map((rest) => [first, ...rest]),
  );
}
