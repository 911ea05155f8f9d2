import { chownSync, lutimesSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createEditedFiles } from '../../gateway/server/edited-files.ts';
import { configFolder } from '../support/config-folder.ts';

const time = '2026-11-28T14:03:10.000Z';
const owner = userInfo().username;

function folder() {
  const { file } = configFolder({ 'tollgate.yaml': 'a', 'keys.yaml': 'b' });
  const pathOf = (name: string) => join(file, '..', name);
  for (const name of ['tollgate.yaml', 'keys.yaml']) utimesSync(pathOf(name), new Date(time), new Date(time));
  const digests = (main: string, keys?: string) =>
    new Map([
      [pathOf('tollgate.yaml'), main],
      ...(keys === undefined ? [] : [[pathOf('keys.yaml'), keys] as const]),
    ]);
  return { pathOf, digests };
}

it('an edited file has its owner and its time, and other files are not listed', () => {
  const { digests } = folder();
  const edited = createEditedFiles(digests('1', '1'));
  expect(edited.ofLoaded(digests('1', '2'))).toEqual([{ name: 'keys.yaml', owner, modifiedAt: time }]);
  expect(edited.ofLoaded(digests('1', '2'))).toEqual([]);
});

it('a file that is not there any more has only its name', () => {
  const { pathOf, digests } = folder();
  const edited = createEditedFiles(digests('1', '1'));
  rmSync(pathOf('keys.yaml'));
  expect(edited.ofLoaded(digests('1'))).toEqual([{ name: 'keys.yaml' }]);
});

it('a symbolic link has the owner and the time of its target, as in a config map of Kubernetes', () => {
  const { pathOf, digests } = folder();
  writeFileSync(pathOf('data'), 'c');
  utimesSync(pathOf('data'), new Date(time), new Date(time));
  rmSync(pathOf('keys.yaml'));
  symlinkSync('data', pathOf('keys.yaml'));
  lutimesSync(pathOf('keys.yaml'), 0, 0);
  const edited = createEditedFiles(digests('1', '1'));
  expect(edited.ofLoaded(digests('1', '2'))).toEqual([{ name: 'keys.yaml', owner, modifiedAt: time }]);
});

it.runIf(process.getuid?.() === 0)('an owner without a name is a number', () => {
  const { pathOf, digests } = folder();
  chownSync(pathOf('keys.yaml'), 54_321, 54_321);
  const edited = createEditedFiles(digests('1', '1'));
  expect(edited.ofLoaded(digests('1', '2'))).toEqual([
    { name: 'keys.yaml', owner: '54321', modifiedAt: time },
  ]);
});

it('a rejected edit lists the edited file, and its repair lists the file again', () => {
  const { digests } = folder();
  const edited = createEditedFiles(digests('1', '1'));
  // A load that fails at the main file does not read the keys file.
  const names = (files: readonly { readonly name: string }[]) => files.map(({ name }) => name);
  expect(names(edited.ofRejected({ kept: [], digests: digests('bad') }))).toEqual(['tollgate.yaml']);
  expect(names(edited.ofLoaded(digests('1', '1')))).toEqual(['tollgate.yaml']);
});

it('a file that keeps its last valid content is listed with the rejected edit', () => {
  const { pathOf, digests } = folder();
  const edited = createEditedFiles(digests('1', '1'));
  edited.ofLoaded(digests('2', 'bad'));
  const kept = [{ file: pathOf('keys.yaml'), problems: [], digest: 'bad', revokes: 0, sinceMs: 0 }] as const;
  const rejected = { kept, digests: digests('2', 'bad') } as unknown as Parameters<
    typeof edited.ofRejected
  >[0];
  expect(edited.ofRejected(rejected)).toEqual([{ name: 'keys.yaml', owner, modifiedAt: time }]);
});
