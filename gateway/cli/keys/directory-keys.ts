import { issuedKey, keyDefinition } from '../../admin/wires/keys/definitions.ts';
import type { AdminClient, Reply, Sent } from '../admin/admin-client.ts';
import { changeKey } from '../admin/read-api.ts';
import { CommandError } from '../output/command-error.ts';
import type { ChangedKey, IssuedKey, KeyDefinition, WritableKeys } from './file/writable-keys.ts';
import { requireFutureDate } from './file-keys.ts';

/** Changes keys of the key directory through the admin API. The gateway records each change. */
export function createDirectoryKeys(client: AdminClient): WritableKeys {
  return {
    create({ expires, ...key }) {
      requireFutureDate(expires);
      return issue(key.id, { method: 'POST', path: '/keys', body: { ...key, expiresAt: expires } });
    },

    async addSecret({ id, overlap, expires }) {
      requireFutureDate(expires);
      const body = { overlap, expiresAt: expires };
      return changeKey(id, (path) => issue(id, { method: 'POST', path: `${path}/secrets`, body }));
    },

    setDisabled(id, disabled) {
      return changeKey(id, async (path) => {
        return changed(await client.send({ method: 'PATCH', path, body: { disabled } }, keyDefinition));
      });
    },
  };

  async function issue(id: string, sent: Sent): Promise<IssuedKey> {
    try {
      const reply = await client.send(sent, issuedKey);
      return { ...changed(reply), secret: reply.body.secret, kept: reply.body.kept };
    } catch (error) {
      if (!(error instanceof CommandError && error.mayBeDone)) throw error;
      // The new secret is lost, because only the lost response contained it.
      const advice = `If the gateway made the change, "keys show ${id}" shows it, and "keys rotate ${id} --directory" issues another secret.`;
      throw new CommandError(`${error.message} ${advice}`, 'passing');
    }
  }
}

function changed({ json, body: key }: Reply<KeyDefinition>): ChangedKey {
  return { key, json, where: 'the key directory', isChanged: true };
}
