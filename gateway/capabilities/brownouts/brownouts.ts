import type { Operation } from '../../shared/model.ts';
import { isoSecondOf, secondsUntil } from '../../shared/schema/dates-and-durations.ts';
import type { RefuseAdmitted } from '../interfaces/request.ts';
import type { ProcessPart } from '../interfaces/running.ts';
import type { Brownouts } from './operation-member.ts';
import { brownoutExemption, brownoutRefusals } from './words.js';

export function createBrownouts(): ProcessPart {
  return {
    hooks: ({ operations }) => {
      const haveBrownouts = operations.some(({ deprecation }) => deprecation?.brownouts !== undefined);
      return { refuse: haveBrownouts ? [brownoutRefusal] : [] };
    },
  };
}

/**
 * Returns the refusal of an admitted request during a brownout, a rehearsal of the removal of its operation. Returns undefined outside of
 * brownouts, and if a grant exempts the key.
 */
const brownoutRefusal: RefuseAdmitted = (operation, { exemptions, rateLimit: { nowMs } }) => {
  const endMs = brownoutEndMs(operation, nowMs);
  if (endMs === undefined || exemptions?.includes(brownoutExemption.name)) return undefined;
  const sunsetMs = operation.deprecation?.sunsetMs ?? endMs;
  const seconds = secondsUntil(endMs, nowMs);
  const ends =
    endMs < sunsetMs
      ? `It ends at ${secondOf(endMs)}, in ${seconds} s. The operation is removed for good on ${secondOf(sunsetMs)}.`
      : `It lasts until the operation is removed for good on ${secondOf(sunsetMs)}.`;
  const message = `This is a rehearsal of the removal of this operation. ${ends} A Link header names its successor if there is one.`;
  const fields = ['Retry-After', String(seconds)];
  return { code: 'gone', message, fields, countedAs: brownoutRefusals.name };
};

/** Formats a timestamp, rounded up to a whole second. A client that retries at this second is served. */
function secondOf(epochMs: number): string {
  return isoSecondOf(Math.ceil(epochMs / 1_000) * 1_000);
}

/**
 * Returns the end of the operation's current brownout, epoch ms; undefined without a current brownout. A brownout ends no later than the
 * sunset.
 *
 * @param nowMs the clock that decided the request, epoch ms. With Redis, all processes use Redis's clock
 */
export function brownoutEndMs({ deprecation }: Operation, nowMs: number): number | undefined {
  if (deprecation?.brownouts === undefined) return undefined;
  const { brownouts, sunsetMs = Number.POSITIVE_INFINITY } = deprecation;
  const index = brownouts.findLastIndex(({ fromMs }) => fromMs <= nowMs);
  const series = brownouts[index];
  if (series === undefined || nowMs >= sunsetMs) return undefined;
  const ownEndMs = endIn(series, nowMs);
  if (ownEndMs === undefined) return undefined;
  let endMs = ownEndMs;
  // The next series replaces this series and begins with a brownout.
  for (const { fromMs, everyMs, forMs } of brownouts.slice(index + 1)) {
    if (endMs < fromMs) break;
    endMs = everyMs === forMs ? Number.POSITIVE_INFINITY : fromMs + forMs;
  }
  return Math.min(endMs, sunsetMs);
}

/** Returns the end of the brownout that contains `nowMs`; undefined outside of brownouts. */
function endIn({ fromMs, everyMs, forMs }: Brownouts, nowMs: number): number | undefined {
  // If each brownout lasts until the next one begins, the series is one brownout without an end.
  if (everyMs === forMs) return Number.POSITIVE_INFINITY;
  const beginMs = everyMs === undefined ? fromMs : nowMs - ((nowMs - fromMs) % everyMs);
  return nowMs < beginMs + forMs ? beginMs + forMs : undefined;
}
