import type { KeyChange } from '../../../fleet/changes.ts';
import type { DirectoryKey } from '../../../keys/directory/directory-key.ts';
import type { KeyDefinition, KeyDirectory } from '../../../keys/directory/key-directory.ts';
import {
  type ChangeRequest,
  findInDirectory,
  type KeyChangeSources,
  noSuchKey,
  type Refused,
  refused,
  storeFailed,
} from './change-sources.ts';
import { isMatch } from './definition.ts';

/** An edit of a key, which is a new definition or its removal, with its entry in the record of changes. */
export interface Edit {
  readonly kind: 'edit';
  readonly to: KeyDefinition | 'removed';
  readonly change: Pick<KeyChange, 'action' | 'before' | 'after'>;
}

/** The present key, or the key before its removal. */
export interface Edited {
  readonly kind: 'done';
  readonly key: DirectoryKey;
}

/**
 * Changes the current definition of a key in the directory. After a concurrent change the key is read again and `edit` is
 * called again, so that neither change is lost. With `If-Match` the request is refused instead.
 */
export async function editKey(
  sources: KeyChangeSources,
  { params: { id = '' }, headers, token }: ChangeRequest,
  edit: (key: DirectoryKey) => Edit | { readonly kind: 'unchanged' } | Refused,
): Promise<Edited | Refused> {
  for (let attempt = 1; attempt <= sources.bounds.directoryChangeAttemptsMax; attempt++) {
    const found = await findInDirectory(sources, id);
    if (found.kind === 'refused') return found;
    if (!isMatch(headers, found.key)) return refused('precondition_failed');
    const made = edit(found.key);
    if (made.kind === 'refused') return made;
    if (made.kind === 'unchanged') return { kind: 'done', key: found.key };
    const reply = await write(found.directory, found.key, made.to);
    switch (reply.kind) {
      case 'written':
      case 'removed':
        sources.record({ ...made.change, by: token.name, key: id });
        return { kind: 'done', key: reply.kind === 'written' ? reply.key : found.key };
      case 'absent':
        return noSuchKey();
      case 'changed':
        // The key is read again, and If-Match then decides.
        break;
      case 'away': {
        const failed = storeFailed(reply);
        if (reply.mayHaveRun) {
          sources.record({ ...made.change, by: token.name, key: id, error: failed.message });
        }
        return failed;
      }
    }
  }
  return refused('conflict', `Others are changing ${id} at the same time: try again.`);
}

function write(
  directory: KeyDirectory,
  seen: DirectoryKey,
  to: Edit['to'],
): ReturnType<KeyDirectory['replace' | 'remove']> {
  return to === 'removed' ? directory.remove(seen.id, seen) : directory.replace(to, seen);
}
