import type { Logger } from 'pino';

/** Warns of keys that something is wrong with, once of each. */
export type WarnOfKey = (keyId: string, message: string) => void;

/** At most so many ids are remembered; then all may be warned of again. */
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
