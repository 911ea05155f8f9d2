import type { Logger } from 'pino';
import { addressGroup } from '../../shared/address-group.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createMinuteCounts } from './minute-counts.ts';

/** The wrong tokens of each client address, limited per minute. A valid token is never refused for its address. */
export interface WrongTokens {
  /** Counts one. @returns how long the address is to wait, seconds; undefined while it is under its limit */
  count(address: string): number | undefined;
  /** How many addresses are remembered. */
  readonly size: number;
}

/**
 * A token cannot be guessed: the limit is there so that trying costs the gateway little. What was tried is logged together,
 * one line now and then.
 */
export function createWrongTokens({
  log,
  nowMs,
  bounds,
}: {
  readonly log: Pick<Logger, 'warn'>;
  readonly nowMs: () => number;
  readonly bounds: Pick<
    Bounds,
    'adminWrongTokensPerMinuteMax' | 'adminGuessersMax' | 'adminWrongTokensIntervalMs'
  >;
}): WrongTokens {
  const counts = createMinuteCounts({
    perMinuteMax: bounds.adminWrongTokensPerMinuteMax,
    namesMax: bounds.adminGuessersMax,
    nowMs,
  });
  let sinceLogged = 0;

  function logLater(): void {
    sinceLogged += 1;
    if (sinceLogged > 1) return;
    setTimeout(() => {
      log.warn({ wrongTokens: sinceLogged, addresses: counts.size }, 'wrong tokens at the admin API');
      sinceLogged = 0;
    }, bounds.adminWrongTokensIntervalMs).unref();
  }

  return {
    count(address) {
      logLater();
      return counts.count(addressGroup(address));
    },
    get size() {
      return counts.size;
    },
  };
}
