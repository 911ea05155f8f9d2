import * as z from 'zod';
import { listLeaksWire } from '../../admin/wires/keys/leaks.ts';
import type { Settings } from '../../shared/model.ts';
import { digestStart } from '../../shared/secrets.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { counted } from '../../shared/words/figures.js';
import type { AdminClient } from '../admin/admin-client.ts';
import { instant } from '../output/figures.ts';

/**
 * Asks the `/readyz` of a gateway how many secrets of its configuration have leaked. `/readyz` needs no token, and names no key.
 *
 * @param url the admin listener
 * @returns a sentence if there are leaked secrets; nothing if no gateway of this environment answers
 */
export async function leakedCountWarnings(
  url: URL,
  { environment }: Pick<Settings, 'environment'>,
  timeoutMs: number,
): Promise<readonly string[]> {
  try {
    const response = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(timeoutMs) });
    const { environment: other, leakedSecrets: count } = readiness.parse(await response.json());
    if (other !== environment || count === 0) return [];
    return [
      `the gateway at ${url.origin} reports that its configuration still has ${counted(count, 'leaked secret')}; set TOLLGATE_ADMIN_TOKEN so that check can name the keys`,
    ];
  } catch {
    return [];
  }
}

const readiness = z.object({ environment: z.string(), leakedSecrets: z.int() });

/**
 * Asks a gateway which secrets of a configuration have leaked. Only a gateway knows the leaks, because it receives the reports.
 *
 * @returns one sentence for each leaked secret that the configuration still has
 * @throws a CommandError if the gateway cannot be asked
 */
export async function leakedWarnings(
  { keys, keysFile }: Pick<Settings, 'keys' | 'keysFile'>,
  client: Pick<AdminClient, 'ask'>,
): Promise<readonly string[]> {
  const { secrets } = (await client.ask(listLeaksWire)).body;
  return secrets.flatMap(({ key, digestStart: start, leak }) => {
    if (!keys.secretsOf(key).some(({ digest }) => digestStart(digest) === start)) return [];
    const line = keysFile?.lines[keys.rankOf(key) ?? -1];
    const where = line === undefined ? '' : `${keysFile?.path}:${line}: `;
    const state = leak.ended ? 'it is refused' : 'it is still valid';
    const found = leak.url === undefined ? '' : `, at ${leak.url}`;
    return [
      printable(
        `${where}the secret ${start}… of the key ${key} leaked, and ${state}; remove it and issue another one (reported by ${leak.by} on ${instant(leak.at)} UTC${found})`,
      ),
    ];
  });
}
