import { expect, test } from 'vitest';
import { holderParts } from '../../../gateway/capabilities/holder/settings.ts';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { configFolder, mainDocument } from '../../support/config-folder.ts';

/**
 * Loads a small configuration with the given extra lines. The base URL of the configuration has the path `basePath`.
 */
function load(lines: string, { basePath = '/v1', paths = '' } = {}) {
  const main = mainDocument.replace('example.com/v1', `example.com${basePath}`) + lines;
  const folder = configFolder({
    'tollgate.yaml': main,
    'openapi.yaml': `paths:\n  /pets: { get: { operationId: listPets } }\n${paths}`,
  });
  const loaded = loadSettings({ file: folder.file, env: {} });
  return loaded.kind === 'valid'
    ? { settings: loaded.settings, report: '' }
    : { settings: undefined, report: formatProblems(loaded.problems).replaceAll(folder.pathOf(''), '') };
}

test('each page of the gateway is off until it has a path, which is not below the base URL', () => {
  expect(load('').settings?.limitsPath).toBeUndefined();
  expect(load('limitsPath: /me/limits\n').settings?.limitsPath).toBe('/me/limits');
});

test('the API reference comes with the API document as JSON', () => {
  expect(load('').settings?.docs).toBeUndefined();
  expect(load('docsPath: /docs\n').settings?.docs).toMatchObject({ path: '/docs' });
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

test.each([
  ['/docs', '/docs', '', '`docsPath` is also a path of the operation `getAny`; write another path'],
  ['/docs', '/{any}/{more}', '', '`docsPath` is also a path of the operation `getAny`; write another path'],
  [
    '/v1/docs',
    '/docs/x/{more}',
    '/v1',
    '`docsPath` is also a path of the operation `getAny`; write another path',
  ],
  ['/docs', '/{any+}', '', '`docsPath` is also a path of the operation `getAny`; write another path'],
  ['/v1/docs', '/do{any+}', '/v1', '`docsPath` is also a path of the operation `getAny`; write another path'],
  ['/docs', '/do{any}', '', '`docsPath` is also a path of the operation `getAny`; write another path'],
  [
    '/docs',
    '/openapi.json',
    '',
    'the API document at `/openapi.json` is also a path of the operation `getAny`; it is served with `docsPath`: remove `docsPath`',
  ],
  [
    '/openapi.json',
    '/a',
    '/v1',
    '`docsPath` is also a path of the API document at `/openapi.json`; write another path',
  ],
])('docsPath %s conflicts with the path %s below %j', (docsPath, template, basePath, message) => {
  const paths = `  ${template}: { get: { operationId: getAny } }\n`;
  expect(load(`docsPath: ${docsPath}\n`, { basePath, paths }).report).toContain(message);
});

test.each(['/{any}.json', '/doc/{any+}', '/docs{any}', '/a{any+}'])(
  'docsPath does not conflict with the path %s, which does not match it',
  (template) => {
    const paths = `  ${template}: { get: { operationId: getAny } }\n`;
    expect(load('docsPath: /docs\n', { basePath: '/v1', paths }).report).toBe('');
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
