import { expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { type ConfigFolder, configFolder, mainDocument } from '../support/config-folder.ts';

type Env = Readonly<Record<string, string>>;

function load({ file }: ConfigFolder, env: Env) {
  const loaded = loadSettings({ file, env });
  return loaded.kind === 'valid' ? loaded.settings : formatProblems(loaded.problems);
}

const withMain = (line: string) => configFolder({ 'tollgate.yaml': `${mainDocument}${line}\n` });

test('an unquoted scalar with a variable is a number when it looks like one', () => {
  const block = withMain('listen:\n  port: ${PORT:-8080}');
  expect(load(block, {})).toMatchObject({ listen: { port: 8080 } });
  expect(load(block, { PORT: '9000' })).toMatchObject({ listen: { port: 9000 } });
});

test('the default replaces an unset or empty variable', () => {
  const folder = withMain('redis:\n  url: ${REDIS_URL:-redis://fallback}');
  expect(load(folder, {})).toMatchObject({ redis: { url: 'redis://fallback' } });
  expect(load(folder, { REDIS_URL: '' })).toMatchObject({ redis: { url: 'redis://fallback' } });
  expect(load(folder, { REDIS_URL: 'redis://set' })).toMatchObject({ redis: { url: 'redis://set' } });
});

test('no value of a variable can add structure', () => {
  const folder = withMain('redis:\n  url: redis://redis\n  passwordFile: password\n  username: ${NAME}');
  folder.write('password', 'hunter2');
  for (const username of ['"a', '{x:1}', '*a', '!t', '[1]', '#']) {
    expect(load(folder, { NAME: username })).toMatchObject({ redis: { username } });
  }
  expect(load(folder, { NAME: 'a\nadmin: {port: 1}' })).toContain('`redis.username` must be');
});

test('NAME_FILE is a file with the value, as for Docker secrets', () => {
  const folder = withMain('redis:\n  url: ${REDIS_URL}');
  folder.write('secret', 'redis://:word@redis\n');
  const env = { REDIS_URL_FILE: folder.pathOf('secret') };
  expect(load(folder, env)).toMatchObject({ redis: { url: 'redis://:word@redis' } });
  const loaded = loadSettings({ file: folder.file, env });
  expect([...loaded.digests.keys()]).toContain(folder.pathOf('secret'));
});

test('a NAME_FILE that cannot be read is reported without its path', () => {
  const folder = withMain('redis:\n  url: ${REDIS_URL}');
  expect(load(folder, { REDIS_URL_FILE: folder.pathOf('nowhere') })).toBe(
    `${folder.file}:10:8: the file that REDIS_URL_FILE names does not exist\n  10 |   url: \${REDIS_URL}\n     |        ^`,
  );
});

test('a report never shows a substituted value', () => {
  const secret = 'hunter2';
  const everywhere = configFolder({
    'tollgate.yaml': `environment: \${S} \${S}
baseUrl: \${S}
redis: { url: "\${S}", prefix: "{\${S}", onFailure: "\${S}" }
upstream: { url: "\${S}", health: "\${S}" }
plans: { free: "\${S}" }
keys: [{ id: "{\${S}", plan: "\${S}", name: "\${S}", disabled: "\${S}", secrets: [{ sha256: "\${S}", expires: "\${S}" }] }]
api: "\${S}"
bans: { after: "\${S}", within: "\${S}" }
trustedProxies: ["\${S}"]
`,
  });
  const report = load(everywhere, { S: secret });
  expect(report).toContain('`baseUrl` must be');
  expect(report).not.toContain(secret);
});

test('a report masks a password in a URL', () => {
  const report = load(withMain('redis: { url: "redis://user:hunter2@redis", x: 1 }'), {});
  expect(report).toMatch(/redis: { url: "redis:\*+, \*\* \* }/);
  expect(report).not.toContain('hunter2');
});

test('variables in the API document are not substituted', () => {
  const folder = configFolder({
    'openapi.yaml': 'paths: { /a: { get: { operationId: a, description: "costs ${PRICE}" } } }\n',
  });
  expect(load(folder, {})).toMatchObject({ operations: [{ id: 'a' }] });
});
