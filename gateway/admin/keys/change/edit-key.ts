import type { KeyChange } from '../../../fleet/changes.ts';
import type { DirectoryKey } from '../../../keys/directory/directory-key.ts';
import type { KeyDefinition, KeyDirectory } from '../../../keys/directory/key-directory.ts';
import { planNameAt } from '../../../keys/plans/compile-key.ts';
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

/** A new definition of a key, or the key's removal, with the entry for the record of changes. */
export interface Edit {
  readonly kind: 'edit';
  readonly to: KeyDefinition | 'removed';
  readonly change: Pick<KeyChange, 'action' | 'before' | 'after' | 'appliedLimits'>;
}

/** The result of an edit: the key after the edit, or the removed key. */
export interface Edited {
  readonly kind: 'done';
  readonly key: DirectoryKey;
  /** Whether the key was as wanted already. */
  readonly isUnchanged: boolean;
}

/**
 * Changes the current definition of a key in the directory. After a concurrent change, the function reads the key and
 * calls `edit` again, so that neither change is lost. If `If-Match` names the version before the concurrent change, the
 * function refuses the request.
 */
export async function editKey(
  sources: KeyChangeSources,
  { params: { id = '' }, headers, author }: ChangeRequest,
  edit: (key: DirectoryKey) => Edit | { readonly kind: 'unchanged' } | Refused,
): Promise<Edited | Refused> {
  for (let attempt = 1; attempt <= sources.bounds.directoryChangeAttemptsMax; attempt++) {
    const found = await findInDirectory(sources, id);
    if (found.kind === 'refused') return found;
    if (!isMatch(headers, found.key)) return refused('precondition_failed');
    const plan = planNameAt(found.key, sources.nowMs());
    const made = edit(found.key);
    if (made.kind === 'refused') return made;
    if (made.kind === 'unchanged') return { kind: 'done', key: found.key, isUnchanged: true };
    const reply = await write(found.directory, found.key, made.to);
    switch (reply.kind) {
      case 'written':
      case 'removed':
        sources.record({ ...made.change, ...author, key: id, plan });
        return { kind: 'done', key: reply.kind === 'written' ? reply.key : found.key, isUnchanged: false };
      case 'absent':
        return noSuchKey();
      case 'changed':
        // The next attempt reads the key again and checks `If-Match` again.
        break;
      case 'away': {
        const failed = storeFailed(reply);
        if (reply.mayHaveRun) {
          sources.record({ ...made.change, ...author, key: id, plan, error: failed.message });
        }
        return failed;
      }
    }
  }
  return refused('conflict', `Other requests are changing ${id} at the same time: try again.`);
}

function write(
  directory: KeyDirectory,
  seen: DirectoryKey,
  to: Edit['to'],
): ReturnType<KeyDirectory['replace' | 'remove']> {
  return to === 'removed' ? directory.remove(seen.id, seen) : directory.replace(to, seen);
}
