import type { Brownouts, Operation } from '../../shared/model.ts';

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
