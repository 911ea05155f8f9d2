import type * as z from 'zod';
import {
  changeKeyWire,
  definitionAnswer,
  issuedAnswer,
  type issuedKey,
  issueKeyWire,
} from '../../admin/wires/keys/definitions.ts';
import { getKeyWire } from '../../admin/wires/keys/key.ts';
import { issueSecretWire } from '../../admin/wires/keys/secrets.ts';
import { digestSecret } from '../../shared/secrets.ts';
import type { AdminClient, Reply } from '../admin/admin-client.ts';
import { changeKey } from '../admin/read/read-key.ts';
import { CommandError } from '../output/command-error.ts';
import { changesAfterEdit, memberEdits } from './edit-key.ts';
import type { ChangedKey, IssuedKey, KeyDefinition, KeyEdit, WritableKeys } from './file/writable-keys.ts';
import { requireFutureDate } from './file-keys.ts';

/** The command does not send an `Idempotency-Key`, so each response is 201 with a new secret. */
const issueOnceWire = { ...issueKeyWire, answers: { 201: issuedAnswer } };
const issueSecretOnceWire = { ...issueSecretWire, answers: { 201: issuedAnswer } };
const addSecretWire = { ...issueSecretWire, answers: { 200: definitionAnswer } };

/** Changes keys of the key directory through the admin API. The gateway records each change. */
export function createDirectoryKeys(client: AdminClient): WritableKeys {
  return {
    create({ expires, ...key }) {
      requireFutureDate(expires);
      const body = { ...key, expiresAt: expires };
      return issue(key.id, () => client.ask(issueOnceWire, { body }));
    },

    async addSecret({ id, overlap, expires, secret }) {
      requireFutureDate(expires);
      const body = { overlap, expiresAt: expires };
      const params = { id };
      if (secret === undefined)
        return changeKey(id, () => issue(id, () => client.ask(issueSecretOnceWire, { params, body })));
      const sha256 = digestSecret(secret);
      const reply = await changeKey(id, () =>
        client.ask(addSecretWire, { params, body: { ...body, sha256 } }),
      );
      return { ...changed(reply), secret };
    },

    setDisabled(id, disabled) {
      return changeKey(id, async () => {
        return changed(await client.ask(changeKeyWire, { params: { id }, body: { disabled } }));
      });
    },

    edit: (id, edit) => changeKey(id, () => editKey(id, edit)),
  };

  async function editKey(id: string, edit: KeyEdit): Promise<ChangedKey> {
    const { changes, version } = await laterChanges(id, edit);
    const ifMatch = edit.ifMatch ?? version;
    return changed(
      await client.ask(changeKeyWire, {
        params: { id },
        body: { ...memberEdits(edit), changes },
        ...(ifMatch !== undefined && { headers: { 'If-Match': ifMatch } }),
      }),
    );
  }

  /** The changes of a key after an edit of them, and the version of the key that they were read from. */
  async function laterChanges(id: string, edit: KeyEdit) {
    if (edit.later === undefined && edit.withdraw === undefined) return {};
    const { body, version } = await client.ask(getKeyWire, { params: { id } });
    return { changes: changesAfterEdit(body.changes, edit, Date.now()), version };
  }

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
  return { key, json, where: 'the key directory', isChanged: Object(json).isUnchanged !== true };
}
