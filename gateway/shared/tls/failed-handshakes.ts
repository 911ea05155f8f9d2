import type { Bounds } from '../timeouts-and-sizes.ts';

/**
 * Logs failed TLS handshakes by reason, in one line per interval, because any client can cause many. An operator whose clients cannot
 * connect needs the reasons.
 */
export function createFailedHandshakes(
  log: { info(members: object, text: string): void },
  { tlsFailuresIntervalMs }: Pick<Bounds, 'tlsFailuresIntervalMs'>,
) {
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
    /** @param reason from a closed set, such as a code of OpenSSL, without input of the client */
    count(listener: 'listen' | 'admin', reason: string) {
      const byReason = counts[listener];
      byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
      if (timer === undefined) timer = setTimeout(write, tlsFailuresIntervalMs).unref();
    },
  };
}
