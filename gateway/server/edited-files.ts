import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Digests } from '../config/source/read-config-file.ts';
import type { Rejected } from '../config/watch-settings.ts';
import type { EditedFile } from '../fleet/changes.ts';

/** Finds the files that an edit has changed, by the digests of their contents. */
export function createEditedFiles(first: Digests) {
  let before = first;

  const changed = (files: Iterable<string>, after: Digests) =>
    [...new Set(files)].filter((file) => before.get(file) !== after.get(file)).map(describeFile);

  return {
    /** @param after the digests of all files of the new configuration */
    ofLoaded(after: Digests): readonly EditedFile[] {
      const edited = changed([...before.keys(), ...after.keys()], after);
      before = after;
      return edited;
    },
    /** The files with errors, or else the files that were edited. A load that fails as a whole does not read all files. */
    ofRejected({ kept, digests }: Pick<Rejected, 'kept' | 'digests'>): readonly EditedFile[] {
      const edited = changed(digests.keys(), digests);
      before = new Map([...before, ...digests]);
      return kept.length === 0 ? edited : kept.map(({ file }) => describeFile(file));
    },
  };
}

/** Describes the target of a symbolic link, such as the file of a config map in Kubernetes. */
function describeFile(file: string): EditedFile {
  const name = basename(file);
  try {
    const { uid, mtime } = statSync(file);
    return { name, owner: userName(uid), modifiedAt: mtime.toISOString() };
  } catch {
    return { name };
  }
}

/** The name in /etc/passwd. A container often has no entry for the owner of a mounted file. */
function userName(uid: number): string {
  const isOfUser = (line: string) => line.split(':')[2] === String(uid);
  try {
    return readFileSync('/etc/passwd', 'utf8').split('\n').find(isOfUser)?.split(':')[0] || String(uid);
  } catch {
    return String(uid);
  }
}
