import * as z from 'zod';
import { type DirectoryKey, statedOf } from '../../../keys/directory/directory-key.ts';
import type { KeyDefinition } from '../../../keys/directory/key-directory.ts';
import { keyId, keySchema } from '../../../keys/key-schema.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { queryOf, text, wholeNumber } from '../../../shared/schema/query-parameters.ts';
import { expects, fields, list } from '../../../shared/schema/schema-parts.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type AdminResponse, jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { instant, list as listShown, stated } from '../../api/response-parts.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { defineWire } from '../../api/wire.ts';
import type { KeySources } from '../key-sources.ts';
import { noDirectory, storeFailed } from './change-sources.ts';

const digestShown = (description: string) => z.string().meta({ pattern: '^[0-9a-f]{64}$', description });

const pastSecretShown = z.object({
  sha256: digestShown('The hex SHA-256 digest of a whole secret.'),
  issuedFrom: digestShown(
    'The digest of the secret with which the holder of the key issued this secret; absent for a secret of an operator.',
  ).optional(),
});

const movedShown = z.object({
  ...stated(keySchema.shape, ['id', 'plan', 'secrets']),
  id: z.string(),
  plan: z.string(),
  secrets: listShown(
    pastSecretShown.extend({ createdAt: instant.optional(), expiresAt: instant.optional() }),
  ),
  pastSecrets: listShown(pastSecretShown)
    .optional()
    .describe('The removed secrets from which a secret of the key descends.'),
});

type MovedView = z.output<typeof movedShown>;

export const directoryPage = z.object({
  keys: listShown(movedShown),
  next: z.string().optional().describe('The value of `after` for the next page; absent on the last page.'),
});

export const exportDirectoryWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/directory',
    operationId: 'exportDirectory',
    tag: 'Keys',
    summary: 'Export the keys of the key directory',
    description:
      'A page of the keys, sorted by id, in the form that POST accepts. The page contains whole digests, so the request needs a token that may write. The page contains no secrets.',
    query: queryOf({
      after: text(100).optional().describe('The `next` of the previous page.'),
      limit: wholeNumber(1, bounds.importKeysMax)
        .default(bounds.importKeysMax)
        .describe('The largest number of entries.'),
    }),
    answers: { 200: { description: 'The keys.', schema: directoryPage } },
  });

/**
 * `GET /directory` exports the whole directory as a backup. The response contains the complete digests of secrets, so
 * the request needs a token that may write.
 */
export function exportRoute({ directory, bounds }: KeySources): Route {
  return defineRoute({
    ...exportDirectoryWire(bounds),
    needs: 'write',
    respond: async ({ query }) =>
      directory === undefined ? noDirectory().response : exportPage(directory, query),
  });
}

export function directoryIdsBody(keysMax: number) {
  const wanted = `a list of at most ${keysMax} ids`;
  return fields('an object with ids', { ids: list(keyId, wanted).max(keysMax, expects(wanted)) });
}

export const directoryIds = z.object({ ids: listShown(z.string()) });

export const findInDirectoryWire = (bounds: Bounds) =>
  defineWire({
    method: 'POST',
    path: '/directory/ids',
    operationId: 'findInDirectory',
    tag: 'Keys',
    summary: 'Find ids in the key directory',
    description:
      'Returns the ids of the list, at most 500, that belong to a key of the key directory and to no key of the configuration. A command sends this request before it writes keys into a file, because a key of the file has precedence over a key of the key directory with the same id.',
    body: directoryIdsBody(bounds.importKeysMax),
    answers: { 200: { description: 'The ids.', schema: directoryIds } },
  });

/**
 * `POST /directory/ids` returns the sent ids for which the directory has a key. A command sends this request before it
 * writes keys with these ids into a file.
 */
export function directoryIdsRoute({ directory, settings, bounds }: KeySources): Route {
  return defineRoute({
    ...findInDirectoryWire(bounds),
    needs: 'read',
    async respond({ body }) {
      const ids = body.ids.filter((id) => !settings().keys.has(id));
      const read = await directory?.readMany(ids);
      if (read?.kind === 'away') return storeFailed({ ...read, mayHaveRun: false }).response;
      if (read?.keys.includes('unknown')) return storeUnavailable();
      const found = ids.filter((_, index) => read?.keys[index] !== undefined);
      return jsonResponse({ ids: found } satisfies z.output<typeof directoryIds>);
    },
  });
}

async function exportPage(
  directory: NonNullable<KeySources['directory']>,
  query: { readonly after?: string | undefined; readonly limit: number },
): Promise<AdminResponse> {
  const page = await directory.page(query);
  if (page.kind === 'away') return storeFailed({ ...page, mayHaveRun: false }).response;
  const read = await directory.readMany(page.ids);
  if (read.kind === 'away') return storeFailed({ ...read, mayHaveRun: false }).response;
  const keys: MovedView[] = [];
  for (const key of read.keys) {
    if (key === 'unknown') return storeUnavailable();
    if (key !== undefined) keys.push(movedView(key));
  }
  return jsonResponse({ keys, next: page.next } satisfies z.output<typeof directoryPage>);
}

export function movedView(key: DirectoryKey | KeyDefinition): MovedView {
  return {
    ...statedOf(key),
    secrets: key.secrets.map(({ digest, createdMs, expiresMs, issuedFrom }) => ({
      sha256: digest,
      createdAt: isoOf(createdMs),
      expiresAt: isoOf(expiresMs),
      issuedFrom,
    })),
    pastSecrets: key.pastSecrets?.map(({ digest, issuedFrom }) => ({ sha256: digest, issuedFrom })),
  };
}
