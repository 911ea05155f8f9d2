import type * as z from 'zod';
import { type DirectoryKey, statedOf } from '../../../keys/directory/directory-key.ts';
import type { KeyDefinition } from '../../../keys/directory/key-directory.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { type AdminResponse, jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import {
  type directoryIds,
  type directoryPage,
  exportDirectoryWire,
  findInDirectoryWire,
  type MovedView,
} from '../../wires/keys/directory.ts';
import type { KeySources } from '../key-sources.ts';
import { noDirectory, storeFailed } from './change-sources.ts';

/**
 * `GET /directory` exports the whole directory as a backup. The response contains the complete digests of secrets, so
 * the request needs a token that may write.
 */
export function exportRoute({ directory, bounds }: KeySources): Route {
  return defineRoute({
    ...exportDirectoryWire(bounds),
    needs: 'write',
    isExact: true,
    respond: async ({ query }) =>
      directory === undefined ? noDirectory().response : exportPage(directory, query),
  });
}

/**
 * `POST /directory/ids` returns the sent ids for which the directory has a key. A command sends this request before it
 * writes keys with these ids into a file.
 */
export function directoryIdsRoute({ directory, settings, bounds }: KeySources): Route {
  return defineRoute({
    ...findInDirectoryWire(bounds),
    needs: 'read',
    isExact: true,
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
