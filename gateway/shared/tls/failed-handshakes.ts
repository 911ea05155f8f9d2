import type { Bounds } from '../timeouts-and-sizes.ts';

export interface FailedHandshakes {
  /** Counts one. The reason is one of a closed set, such as a code of OpenSSL: nothing that the client has sent. */
  count(listener: 'listen' | 'admin', reason: string): void;
}

/** The part of the log that is used here. */
interface HandshakeLog {
  info(members: object, text: string): void;
}

/**
 * Logs failed TLS handshakes together, one line now and then with how many there were for each reason: anybody can make
 * as many as he likes, and an operator whose clients cannot connect needs to see why.
 */
export function createFailedHandshakes(
  log: HandshakeLog,
  { tlsFailuresIntervalMs }: Pick<Bounds, 'tlsFailuresIntervalMs'>,
): FailedHandshakes {
  const counts: Record<'listen' | 'admin', Map<string, number>> = { listen: new Map(), admin: new Map() };
  let timer: NodeJS.Timeout | undefined;

  function write(): void {
    timer = undefined;
    for (const [listener, byReason] of Object.entries(counts)) {
      if (byReason.size === 0) continue;
      log.info({ listener, failed: Object.fromEntries(byReason) }, 'TLS handshakes failed');
      byReason.clear();
    }
  }

  return {
    count(listener, reason) {
      const byReason = counts[listener];
      byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
      if (timer === undefined) timer = setTimeout(write, tlsFailuresIntervalMs).unref();
    },
  };
}
