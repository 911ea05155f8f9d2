import type { Logger } from 'pino';

/** At most once for each key. */
export type WarnOfKey = (keyId: string, message: string) => void;

/** @param idsMax ids that are remembered; then all may be logged again */
export function createWarnOfKey(
  log: Pick<Logger, 'warn'>,
  { idsMax }: { readonly idsMax: number },
): WarnOfKey {
  const warned = new Set<string>();
  return (keyId, message) => {
    if (warned.has(keyId)) return;
    if (warned.size >= idsMax) warned.clear();
    warned.add(keyId);
    log.warn({ keyId }, message);
  };
}
