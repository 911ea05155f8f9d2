import * as z from 'zod';
import { keyId, keySchema, movedKeySchema } from '../../../keys/key-schema.ts';
import {
  components,
  count,
  instant,
  list as listShown,
  nextPage,
  positive,
  stated,
  words,
} from '../../../keys/response-parts.ts';
import { afterPage, defineWire } from '../../../shared/http/wire.ts';
import { queryOf, text, wholeNumber } from '../../../shared/schema/query-parameters.ts';
import { digestOf, expects, fields, list } from '../../../shared/schema/schema-parts.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { keyParts } from './definitions.ts';
import { leakShown } from './key.ts';

const digestShown = (description: string) => z.string().meta({ pattern: '^[0-9a-f]{64}$', description });

const pastSecretShown = z.object({
  sha256: digestShown('The hex SHA-256 digest of a whole secret.'),
  issuedFrom: digestShown(
    'The digest of the secret with which the holder of the key issued this secret.',
  ).optional(),
});

const movedShown = z.object({
  ...stated(keySchema.shape, ['limits', 'changes', 'groups', 'id', 'plan', 'secrets']),
  ...keyParts,
  id: z.string(),
  plan: z.string(),
  secrets: listShown(
    pastSecretShown.extend({ createdAt: instant.optional(), expiresAt: instant.optional() }),
  ),
  pastSecrets: listShown(pastSecretShown)
    .optional()
    .describe('The removed secrets from which a secret of the key descends.'),
});

export type MovedView = z.output<typeof movedShown>;

export const directoryPage = z
  .object({
    keys: listShown(movedShown),
    next: nextPage,
  })
  .register(components, { id: 'DirectoryPage' });

export const exportDirectoryWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/directory',
    operationId: 'exportDirectory',
    tag: 'Keys',
    summary: 'Export the keys of the key directory',
    description:
      'A page of the keys, sorted by id, in the form that POST accepts. The page contains whole digests, so the request needs a token that may write.',
    query: queryOf({
      after: afterPage(text(100)),
      limit: wholeNumber(1, bounds.importKeysMax)
        .default(bounds.importKeysMax)
        .describe('The largest number of entries.'),
    }),
    answers: { 200: { description: 'The keys.', schema: directoryPage } },
  });

function directoryIdsBody(keysMax: number) {
  const wanted = `a list of at most ${keysMax} ids`;
  return fields('an object with ids', { ids: list(keyId, wanted).max(keysMax, expects(wanted)) });
}

export const directoryIds = z
  .object({ ids: listShown(z.string()) })
  .register(components, { id: 'DirectoryIds' });

export const findInDirectoryWire = (bounds: Bounds) =>
  defineWire({
    method: 'POST',
    path: '/directory/ids',
    operationId: 'findInDirectory',
    tag: 'Keys',
    summary: 'Find ids in the key directory',
    description:
      'Returns the ids of the list, at most 500, that belong to a key of the key directory and to no key of the configuration, which would have precedence. A token that may read is sufficient.',
    body: directoryIdsBody(bounds.importKeysMax),
    answers: { 200: { description: 'The ids.', schema: directoryIds } },
  });

function importBody(keysMax: number) {
  const keysWanted = `a list of at most ${keysMax} keys`;
  return fields('an object with keys', {
    keys: list(movedKeySchema, keysWanted).max(keysMax, expects(keysWanted)),
  });
}

export const imported = z
  .object({
    created: count,
    unchanged: count,
    refused: listShown(z.object({ id: z.string(), reason: z.string() })),
  })
  .register(components, { id: 'Imported' });

export type Imported = z.output<typeof imported>;

export const importDirectoryWire = (bounds: Bounds) =>
  defineWire({
    method: 'POST',
    path: '/directory',
    operationId: 'importDirectory',
    tag: 'Keys',
    summary: 'Import keys into the key directory',
    description:
      'Accepts at most 500 keys, 512 KiB, and 32,768 members in all objects and lists together. A key that does not fit the configuration, or has more than 16 secrets, is refused. The definition of an existing key never changes: an equal key counts as unchanged, and a different key is refused. The order, the issue times and the `issuedFrom` of secrets make no difference. An import can therefore be repeated. The first import of a process that creates a key waits at least 1.5 s.',
    body: importBody(bounds.importKeysMax),
    answers: {
      200: {
        description: 'The numbers of created and unchanged keys, and the refused keys.',
        schema: imported,
      },
    },
  });

const owner = z
  .discriminatedUnion('known', [
    z.object({ known: z.literal(false).describe('No key has the secret.') }),
    z.object({
      known: z.literal(true),
      id: z.string(),
      plan: z.string(),
      source: words('file', 'directory'),
      file: z.string().optional(),
      line: positive.optional(),
      expiresAt: instant.optional(),
      isExpired: z.boolean(),
      isDisabled: z.boolean(),
      leak: leakShown.optional(),
      refusedFor: words('id_in_configuration', 'no_plan')
        .optional()
        .describe(
          'Why the configuration refuses a key of the key directory: it has another key with this id, or gives the key no limits.',
        ),
    }),
  ])
  .register(components, { id: 'Owner' });

export type Owner = z.output<typeof owner>;

export type KnownOwner = Extract<Owner, { known: true }>;

const whoamiBody = fields('an object with sha256', { sha256: digestOf('secret') });

export const findSecretWire = defineWire({
  method: 'POST',
  path: '/whoami',
  operationId: 'findSecret',
  tag: 'Keys',
  summary: 'The key of a secret',
  description:
    'If a key of the configuration and a key of the key directory both have the secret, the response has the key of the configuration. A token that may read is sufficient.',
  body: whoamiBody,
  answers: { 200: { description: 'The key, or that no key has the secret.', schema: owner } },
});
