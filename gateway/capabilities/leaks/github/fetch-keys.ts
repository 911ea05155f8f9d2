import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { GithubKey } from '../schema.ts';
import { parsePublicKeys } from './public-keys.ts';

/**
 * Fetches the public keys. The function follows no redirect, and limits the time and the size of the response.
 *
 * @throws an error with the reason for the log
 */
export async function fetchKeys(
  url: string,
  { leakKeysTimeoutMs, leakKeysBytesMax }: Pick<Bounds, 'leakKeysTimeoutMs' | 'leakKeysBytesMax'>,
): Promise<readonly GithubKey[]> {
  const response = await fetch(url, {
    redirect: 'error',
    // GitHub's API refuses requests without a `User-Agent`.
    headers: { 'User-Agent': 'tollgate', Accept: 'application/json' },
    signal: AbortSignal.timeout(leakKeysTimeoutMs),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`the response has the status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > leakKeysBytesMax) throw new Error(`the response has more than ${leakKeysBytesMax} octets`);
    chunks.push(chunk);
  }
  const keys = parsePublicKeys(Buffer.concat(chunks).toString(), 'skipped');
  if (typeof keys === 'string') throw new Error(`the response ${keys}`);
  return keys;
}
