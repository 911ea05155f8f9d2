import type { Logger } from 'pino';
import { addressGroup } from '../../../shared/addresses/address-group.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { createMinuteCounts } from './minute-counts.ts';

/**
 * Limits how many wrong tokens a client address may send in a minute. Valid tokens are accepted even from an address
 * with too many wrong tokens.
 */
export interface WrongTokens {
  /** Counts a wrong token. @returns the seconds that the address must wait; undefined below the limit */
  count(address: string): number | undefined;
  /** The number of addresses that are counted at present. */
  readonly size: number;
}

/**
 * Counts wrong tokens. A token is too long to guess, so the limit only bounds the processor time that wrong tokens
 * cost. One log line per interval reports all wrong tokens.
 */
export function createWrongTokens({
  log,
  nowMs,
  bounds,
}: {
  readonly log: Pick<Logger, 'warn'>;
  readonly nowMs: () => number;
  readonly bounds: Bounds;
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
