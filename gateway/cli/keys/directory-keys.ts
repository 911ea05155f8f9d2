import type * as z from 'zod';
import type { AdminClient, Reply, Sent } from '../admin/admin-client.ts';
import { changeKey } from '../admin/read-api.ts';
import { CommandError } from '../output/command-error.ts';
import { requireFutureDate } from './file-keys.ts';
import {
  type ChangedKey,
  type IssuedKey,
  issuedDefinition,
  keyDefinition,
  type WritableKeys,
} from './writable-keys.ts';

/** The keys of the directory: the gateway makes, keeps and records what is asked for here. */
export function createDirectoryKeys(client: AdminClient): WritableKeys {
  return {
    async create({ id, plan, name, limits, expires }) {
      requireFutureDate(expires);
      const body = {
        id,
        plan,
        ...(name !== undefined && { name }),
        ...(Object.keys(limits).length > 0 && { limits }),
        ...(expires !== undefined && { expiresAt: expires }),
      };
      return issued(await issue(id, { method: 'POST', path: '/keys', body }));
    },

    async addSecret({ id, overlap, expires }) {
      requireFutureDate(expires);
      const body = {
        ...(overlap !== undefined && { overlap }),
        ...(expires !== undefined && { expiresAt: expires }),
      };
      const reply = changeKey(id, (path) => issue(id, { method: 'POST', path: `${path}/secrets`, body }));
      return issued(await reply);
    },

    async setDisabled(id, disabled) {
      const reply = await changeKey(id, (path) =>
        client.send({ method: 'PATCH', path, body: { disabled } }, keyDefinition),
      );
      return changed(reply);
    },
  };

  /** A secret is in one response only: when that does not come, it is lost. */
  async function issue(id: string, sent: Sent) {
    try {
      return await client.send(sent, issuedDefinition);
    } catch (error) {
      if (!(error instanceof CommandError && error.mayBeDone)) throw error;
      const advice = `If it was done all the same, "keys show ${id}" shows it, and "keys rotate ${id} --directory" issues another secret.`;
      throw new CommandError(`${error.message} ${advice}`, 'passing');
    }
  }
}

function changed({ json, body: key }: Reply<ChangedKey['key']>): ChangedKey {
  return { key, json, where: 'the directory', isChanged: true };
}

function issued(reply: Reply<z.output<typeof issuedDefinition>>): IssuedKey {
  return { ...changed(reply), secret: reply.body.secret, kept: reply.body.kept };
}
