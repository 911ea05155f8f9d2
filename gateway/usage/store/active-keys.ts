import type { ActiveKey } from './usage-store.ts';

/**
 * Returns each key once, with the time of its last request, epoch ms; the most recently active key first.
 *
 * @param more the times of further requests, by the id of the key
 */
export function latestOf(
  all: readonly ActiveKey[],
  more: ReadonlyMap<string, number> = new Map(),
): readonly ActiveKey[] {
  const latest = new Map<string, number>();
  for (const [keyId, lastSeenMs] of [...all.map((one) => [one.keyId, one.lastSeenMs] as const), ...more])
    latest.set(keyId, Math.max(latest.get(keyId) ?? 0, lastSeenMs));
  return [...latest]
    .map(([keyId, lastSeenMs]) => ({ keyId, lastSeenMs }))
    .sort((a, b) => b.lastSeenMs - a.lastSeenMs);
}
