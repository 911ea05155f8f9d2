import type { Changes, RecordedChange } from '../../../fleet/changes.ts';
import { timeText } from '../../../fleet/wording.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { listOf } from '../../../shared/words/figures.js';
import { errorResponse } from '../../admin-response.ts';
import type { Route } from '../../api/route.ts';
import { noSuchKeyText } from '../../words/keys.js';

interface Record {
  readonly changes: Pick<Changes, 'read'>;
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'changesPerPageMax'>;
}

/** Adds to a 404 about a key when and by whom the key was removed, if the record of changes has the removal. */
export function tellingRemoval(route: Route, record: Record): Route {
  if (!route.path.startsWith('/keys/{id}')) return route;
  return {
    ...route,
    async respond(request) {
      const response = await route.respond(request);
      if (response.status !== 404 || JSON.parse(String(response.body)).message !== noSuchKeyText)
        return response;
      const removal = await removalOf(request.params.id ?? '', record);
      return removal === undefined ? response : errorResponse('not_found', `${noSuchKeyText} ${removal}`);
    },
  };
}

/**
 * A sentence such as "acme was removed at 11:02:03 UTC by an edit of keys.yaml." @returns undefined if the last recorded change of the key
 * is no removal
 */
async function removalOf(
  id: string,
  { changes, nowMs, bounds: { changesPerPageMax: limit } }: Record,
): Promise<string | undefined> {
  const { changes: ofKey } = await changes.read({ limit, key: id });
  for (const change of ofKey) {
    const by = removedBy(change, id);
    if (by !== undefined) return `${id} was removed at ${timeText(Date.parse(change.at), nowMs())} by ${by}.`;
    // The key existed after this change, so the record does not have its removal.
    if (change.action === 'reload' || change.action === 'create') return undefined;
  }
  return undefined;
}

function removedBy(change: RecordedChange, id: string): string | undefined {
  if (change.action === 'reload') {
    if (!change.removedKeys?.includes(id)) return undefined;
    const { files = [], editedFiles = [] } = change;
    const names = editedFiles.map(({ name, owner }) =>
      owner === undefined ? name : `${name} (owner ${owner})`,
    );
    const edited = names.length > 0 ? names : files;
    return edited.length === 0 ? 'an edit of the files' : `an edit of ${listOf(edited)}`;
  }
  if (change.action !== 'delete' || change.error !== undefined) return undefined;
  return change.ranBy === undefined ? change.by : `${change.by}, run by ${change.ranBy}`;
}
