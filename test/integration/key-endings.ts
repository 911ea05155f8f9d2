import { type DirectoryOfTest, secretOf } from '../support/directory-of.ts';

/** Changes of a key of the directory after which its secret is not valid. */
export const keyEndings: readonly [
  name: string,
  change: (directory: DirectoryOfTest, key: string) => Promise<unknown>,
][] = [
  ['revoked', (directory, key) => directory.edit(key, { disabled: true })],
  ['removed', (directory, key) => directory.discard(key)],
  [
    'removed and issued again with another secret',
    async (directory, key) => {
      await directory.discard(key);
      await directory.issue(key, [`next of ${key}`]);
    },
  ],
  [
    'given another secret in its place',
    (directory, key) => directory.edit(key, { secrets: [secretOf(`next of ${key}`)] }),
  ],
];
