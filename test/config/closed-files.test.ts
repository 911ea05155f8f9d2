import { chmodSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { asOtherUser } from '../support/as-other-user.ts';
import { configFolder } from '../support/config-folder.ts';

const owner = process.getuid?.();

/** The problems that are reported if a user who is not root loads the configuration, as in a container. */
async function messagesFor(file: string): Promise<string[]> {
  const output = await asOtherUser(
    ['gateway/config/load-settings.ts'],
    `const loaded = modules.loadSettings({ file: ${JSON.stringify(file)}, env: {} });
     console.log(JSON.stringify(loaded.kind === 'valid' ? [] : loaded.problems.map(({ message }) => message)));`,
  );
  return JSON.parse(output);
}

test('a file that this user may not read is reported with its owner, its mode and a command that fixes it', async () => {
  const { file, pathOf } = configFolder();
  chmodSync(dirname(file), 0o755);
  chmodSync(pathOf('keys.yaml'), 0o200);
  expect(await messagesFor(file)).toEqual([
    `this file may not be read by this user: it belongs to user ${owner} and has mode 200; \`chmod a+r ${pathOf('keys.yaml')}\` opens it to everybody, \`chown\` to the user who runs this`,
  ]);
  chmodSync(pathOf('keys.yaml'), 0o644);
  expect(await messagesFor(file)).toEqual([]);
});

test('a folder that this user may not enter is reported, not the file in it', async () => {
  const { file, pathOf } = configFolder();
  const folder = dirname(file);
  const inner = pathOf('inner');
  mkdirSync(inner);
  for (const name of ['tollgate.yaml', 'keys.yaml', 'openapi.yaml'])
    renameSync(pathOf(name), `${inner}/${name}`);
  chmodSync(folder, 0o755);
  chmodSync(inner, 0o600);
  expect(await messagesFor(`${inner}/tollgate.yaml`)).toEqual([
    `this file may not be read by this user: the folder ${inner} belongs to user ${owner} and has mode 600; \`chmod a+rX ${inner} ${inner}/*\` opens it`,
  ]);
});

test('a keys file that this user may not write stays unchanged, and the error names its owner', async () => {
  const { file, pathOf } = configFolder();
  chmodSync(dirname(file), 0o555);
  chmodSync(pathOf('keys.yaml'), 0o444);
  const output = await asOtherUser(
    ['gateway/cli/keys/file-keys.ts'],
    `await modules.createFileKeys({ file: ${JSON.stringify(file)}, env: {} }).create({ id: 'b', plan: 'free' }).catch(({ message }) => console.log(message));`,
  );
  chmodSync(dirname(file), 0o755);
  expect(output).toBe(
    `${pathOf('keys.yaml')} may not be written by this user: it belongs to user ${owner} and has mode 444; run this as user ${owner} (\`docker compose run --user ${owner} …\`)\n`,
  );
  expect(statSync(pathOf('keys.yaml')).mode & 0o777).toBe(0o444);
});
