import { parsePublicKeys } from '../../keys/leaks/github/public-keys.ts';
import type { GithubKey } from '../../shared/model.ts';
import { wholeFile } from '../problems/problem.ts';
import type { RawSettings } from '../schema/settings-schema.ts';
import type { LoadContext } from './source-reader.ts';

/** Reads the file with the public keys of GitHub. Returns undefined if no file is named or the file cannot be read. */
export function readGithubKeys(
  { leaks: { github } }: RawSettings,
  { main, fileOf, reader, problems }: LoadContext,
): readonly GithubKey[] | undefined {
  if (github?.keysFile === undefined) return undefined;
  const file = fileOf(github.keysFile);
  const text = reader.readText({ file, main, path: ['leaks', 'github', 'keysFile'] });
  if (text === undefined) return undefined;
  const keys = parsePublicKeys(text, 'refused');
  if (typeof keys !== 'string') return keys;
  problems.push({ ...wholeFile(file), message: `this file ${keys}` });
  return undefined;
}
