import { type DirectoryKey, statedOf } from '../../../keys/directory/directory-key.ts';
import type { KeyDefinition } from '../../../keys/directory/key-directory.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type AdminResponse, jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { queryOf, text, wholeNumber } from '../../api/query-parameters.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import type { KeySources } from '../key-sources.ts';
import { noDirectory, storeFailed } from './change-sources.ts';
import { instantOf } from './definition.ts';

/**
 * `GET /directory`: all of the directory, to be kept elsewhere and restored. Digests are shown whole: it needs a token that may
 * write.
 */
export function exportRoute({
  directory,
  bounds: { importKeysMax: keysMax },
}: Pick<KeySources, 'directory'> & { readonly bounds: Pick<Bounds, 'importKeysMax'> }): Route {
  return defineRoute({
    method: 'GET',
    path: '/directory',
    needs: 'write',
    query: queryOf({ after: text(100).optional(), limit: wholeNumber(1, keysMax).default(keysMax) }),
    respond: async ({ query }) =>
      directory === undefined ? noDirectory().response : exportPage(directory, query),
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
  const keys: ReturnType<typeof movedView>[] = [];
  for (const key of read.keys) {
    if (key === 'unknown') return storeUnavailable();
    if (key !== undefined) keys.push(movedView(key));
  }
  return jsonResponse({ keys, ...(page.next !== undefined && { next: page.next }) });
}

export function movedView(key: DirectoryKey | KeyDefinition) {
  return {
    ...statedOf(key),
    secrets: key.secrets.map(({ digest, createdMs, expiresMs }) => ({
      sha256: digest,
      createdAt: instantOf(createdMs),
      ...(expiresMs !== undefined && { expiresAt: instantOf(expiresMs) }),
    })),
  };
}
