import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { holderParts } from '../../../gateway/capabilities/holder/settings.ts';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { load } from '../../config/check/own-paths-fixture.ts';
import { configFolder, mainDocument } from '../../support/config-folder.ts';
import { runTollgate } from '../../support/run-tollgate.ts';

test('the page for key holders is off until it has a path, which is not below the base URL', () => {
  expect(load('').settings?.limitsPath).toBeUndefined();
  expect(load('limitsPath: /me/limits\n').settings?.limitsPath).toBe('/me/limits');
});

test.each(['limits', '/', '/limits/', '/a//b', '/a/../b', '/.', '/a b', '/%61', '/a?b', '/a;b', '/ä', ''])(
  'the path %j is refused, because requests may spell it in several ways',
  (path) => {
    const { report } = load(`limitsPath: ${JSON.stringify(path)}\n`);
    expect(report).toContain('tollgate.yaml:9:13: `limitsPath` must be a path such as /limits, ');
  },
);

test.each([
  ['/v1', '/v1/pets', 'listPets'],
  ['', '/pets', 'listPets'],
  ['', '/limits', 'getAny'],
  ['/v1', '/v1/limits', 'getAny'],
])('with the base path %j, %s belongs to the operation %s', (basePath, path, id) => {
  const { report } = load(`limitsPath: ${path}\n`, {
    basePath,
    paths: '  /{any}: { get: { operationId: getAny } }\n',
  });
  expect(report).toContain(
    `tollgate.yaml:9:13: \`limitsPath\` is also a path of the operation \`${id}\`; write another path`,
  );
});

test.each(holderParts)(
  '%s below limitsPath belongs to the gateway, and any other path below it may be an operation',
  (part) => {
    const paths = (template: string) => `  ${template}: { get: { operationId: getAny } }\n`;
    const refused = load('limitsPath: /me\n', { basePath: '', paths: paths('/me/{any}') });
    expect(refused.report).toContain(
      `tollgate.yaml:9:13: \`/me/${part}\` is also a path of the operation \`getAny\`; it is served with \`limitsPath\`: write another path`,
    );
    expect(load('limitsPath: /me\n', { basePath: '', paths: paths('/me/orders') }).settings).toBeDefined();
  },
);

test.each(['/docs', '/docs/limits', '/openapi.json'])(
  'the path %s of the limits conflicts with the API reference',
  (limitsPath) => {
    const { report } = load(`docsPath: /docs\nlimitsPath: ${limitsPath}\n`);
    expect(report).toContain('tollgate.yaml:10:13: `limitsPath` is also a path of');
  },
);

test.each([
  ['selfService: { rotate: true }\n', '`selfService.rotate` needs `limitsPath`'],
  ['limitsPath: /me\nselfService: { rotate: true }\n', '`selfService.rotate` needs the key directory'],
])('%j is refused, and the report names the setting that it needs', (lines, message) => {
  expect(load(lines).report).toContain(message);
});

test('the published document names the path of the limits', () => {
  const { file } = configFolder({ 'tollgate.yaml': `${mainDocument}docsPath: /docs\nlimitsPath: /me\n` });
  const loaded = loadSettings({ file, env: {} });
  const { info } = JSON.parse((loaded.kind === 'valid' && loaded.settings.docs?.document) || '{}');
  expect(info.description.split('\n').at(-1)).toBe(
    '`GET https://api.example.com/me` returns the limits of a key and the remaining requests, and is not charged.',
  );
});

test('init writes a path of the limits, which is no operation of the API document', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-start-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const api = join(dir, 'api.yaml');
  writeFileSync(
    api,
    'openapi: 3.0.3\nservers: [{ url: https://example.com/v2 }]\npaths: { /limits: { get: {} }, /pets: { get: {} } }\n',
  );
  const ran = await runTollgate(['init', '--upstream', 'http://127.0.0.1:1', '--api', api, '--dir', dir]);
  expect([ran.stderr, ran.exitCode]).toEqual(['', 0]);
  const loaded = loadSettings({ file: join(dir, 'tollgate.yaml'), env: {} });
  expect(loaded).toMatchObject({ kind: 'valid', settings: { basePath: '/v2', limitsPath: '/limits' } });
});
