import type { Logger } from 'pino';
import { addressGroup } from '../../address-group.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';

/** The wrong tokens of each client address, limited per minute. A valid token is never refused for its address. */
export interface WrongTokens {
  /** Counts one. @returns how long the address is to wait, seconds; undefined while it is under its limit */
  count(address: string): number | undefined;
  /** How many addresses are remembered. */
  readonly size: number;
}

interface Counted {
  readonly untilMs: number;
  tokens: number;
}

const minuteMs = 60_000;

/**
 * Counts in this process's memory, each address in minutes of its own that begin with a wrong token. Of more than
 * `bounds.adminGuessersMax` addresses the one that began first is forgotten: a token cannot be guessed, and the limit is
 * there so that trying costs the gateway little. What was tried is logged together, one line now and then.
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
  const byAddress = new Map<string, Counted>();
  let sinceLogged = 0;

  function logLater(): void {
    sinceLogged += 1;
    if (sinceLogged > 1) return;
    setTimeout(() => {
      log.warn({ wrongTokens: sinceLogged, addresses: byAddress.size }, 'wrong tokens at the admin API');
      sinceLogged = 0;
    }, bounds.adminWrongTokensIntervalMs).unref();
  }

  function countedOf(address: string, atMs: number): Counted {
    const before = byAddress.get(address);
    if (before !== undefined && before.untilMs > atMs) return before;
    // Deleted first: the oldest are those that a Map lists first.
    byAddress.delete(address);
    for (const [oldest, { untilMs }] of byAddress) {
      if (untilMs > atMs && byAddress.size < bounds.adminGuessersMax) break;
      byAddress.delete(oldest);
    }
    const counted = { untilMs: atMs + minuteMs, tokens: 0 };
    byAddress.set(address, counted);
    return counted;
  }

  return {
    count(address) {
      logLater();
      const atMs = nowMs();
      const counted = countedOf(addressGroup(address), atMs);
      counted.tokens += 1;
      if (counted.tokens <= bounds.adminWrongTokensPerMinuteMax) return undefined;
      return Math.max(1, Math.ceil((counted.untilMs - atMs) / 1_000));
    },
    get size() {
      return byAddress.size;
    },
  };
}
