import { leakedSecrets } from '../../admin/keys/leak-routes.ts';
import type { Settings } from '../../shared/model.ts';
import { digestStart } from '../../shared/secrets.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { CommandError } from '../output/command-error.ts';
import { instant } from '../output/figures.ts';
import type { AdminClient } from './admin-client.ts';

/**
 * Asks a gateway which secrets of a configuration have leaked. Only a gateway knows the leaks, because it receives the reports.
 *
 * @returns one sentence for each leaked secret that the configuration still has, or the reason why no gateway could be asked
 */
export async function leakedWarnings(
  { keys, keysFile }: Pick<Settings, 'keys' | 'keysFile'>,
  client: () => Pick<AdminClient, 'get'>,
): Promise<readonly string[]> {
  try {
    const { secrets } = (await client().get('/leaks', {}, leakedSecrets)).body;
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
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return [printable(`no gateway could be asked whether a secret has leaked. ${error.message}`)];
  }
}
