import type * as z from 'zod';
import {
  changeKeyWire,
  issuedAnswer,
  type issuedKey,
  issueKeyWire,
} from '../../admin/wires/keys/definitions.ts';
import { issueSecretWire } from '../../admin/wires/keys/secrets.ts';
import type { AdminClient, Reply } from '../admin/admin-client.ts';
import { changeKey } from '../admin/read/read-key.ts';
import { CommandError } from '../output/command-error.ts';
import type { ChangedKey, IssuedKey, KeyDefinition, WritableKeys } from './file/writable-keys.ts';
import { requireFutureDate } from './file-keys.ts';

/** The command does not send an `Idempotency-Key`, so each response is 201 with a new secret. */
const issueOnceWire = { ...issueKeyWire, answers: { 201: issuedAnswer } };

/** Changes keys of the key directory through the admin API. The gateway records each change. */
export function createDirectoryKeys(client: AdminClient): WritableKeys {
  return {
    create({ expires, ...key }) {
      requireFutureDate(expires);
      const body = { ...key, expiresAt: expires };
      return issue(key.id, () => client.ask(issueOnceWire, { body }));
    },

    async addSecret({ id, overlap, expires }) {
      requireFutureDate(expires);
      const body = { overlap, expiresAt: expires };
      return changeKey(id, () => issue(id, () => client.ask(issueSecretWire, { params: { id }, body })));
    },

    setDisabled(id, disabled) {
      return changeKey(id, async () => {
        return changed(await client.ask(changeKeyWire, { params: { id }, body: { disabled } }));
      });
    },
  };

  async function issue(
    id: string,
    ask: () => Promise<Reply<z.output<typeof issuedKey>>>,
  ): Promise<IssuedKey> {
    try {
      const reply = await ask();
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
