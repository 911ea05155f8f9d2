import { expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { configFolder, mainDocument, redisLine } from '../support/config-folder.ts';

function load(keys: string) {
  const { file } = configFolder({
    'tollgate.yaml': mainDocument.replace(/keys: .*/, `keys: ${keys}`) + redisLine,
  });
  return loadSettings({ file, env: {} });
}

test('keys may come from a file, from the directory, or from both', () => {
  const cases = ['{ file: ./keys.yaml }', '{ directory: true }', '{ file: ./keys.yaml, directory: true }'];
  const found = cases.map((keys) => {
    const loaded = load(keys);
    if (loaded.kind === 'invalid') throw new Error(JSON.stringify(loaded.problems));
    const { settings, keysFile, warnings } = loaded;
    return [settings.directory, settings.keys.size > 0, keysFile !== undefined, warnings];
  });
  expect(found).toEqual([
    [false, true, true, []],
    [true, false, false, []],
    [true, true, true, []],
  ]);
});

test('a mapping of keys that names neither file nor directory is refused, with the reason', () => {
  const messageOf = (keys: string) => {
    const loaded = load(keys);
    return loaded.kind === 'invalid' ? loaded.problems.map(({ message }) => message) : [];
  };
  const expected = '`keys` must be a mapping with file, or with `directory: true`, or with both';
  expect(messageOf('{}')).toEqual([expected]);
  expect(messageOf('{ directory: false }')).toEqual([expected]);
  expect(messageOf('{ directory: yes please }')).toEqual(['`keys.directory` must be true or false']);
});
