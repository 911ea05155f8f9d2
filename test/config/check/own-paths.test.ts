import { expect, test } from 'vitest';
import { load } from './own-paths-fixture.ts';

test('each page of the gateway is off until it has a path, which is not below the base URL', () => {
  expect(load('').settings?.docs).toBeUndefined();
  expect(load('docsPath: /me/docs\n').settings?.docs?.path).toBe('/me/docs');
});

test('the API reference comes with the API document as JSON', () => {
  expect(load('').settings?.docs).toBeUndefined();
  expect(load('docsPath: /docs\n').settings?.docs).toMatchObject({ path: '/docs' });
});

test.each(['docs', '/', '/docs/', '/a//b', '/a/../b', '/.', '/a b', '/%61', '/a?b', '/a;b', '/ä', ''])(
  'the path %j is refused, because requests may spell it in several ways',
  (path) => {
    const { report } = load(`docsPath: ${JSON.stringify(path)}\n`);
    expect(report).toContain('tollgate.yaml:9:11: `docsPath` must be a path such as /docs, ');
  },
);

test.each([
  ['/v1', '/v1/pets', 'listPets'],
  ['', '/pets', 'listPets'],
  ['', '/docs', 'getAny'],
  ['/v1', '/v1/docs', 'getAny'],
])('with the base path %j, %s belongs to the operation %s', (basePath, path, id) => {
  const { report } = load(`docsPath: ${path}\n`, {
    basePath,
    paths: '  /{any}: { get: { operationId: getAny } }\n',
  });
  expect(report).toContain(
    `tollgate.yaml:9:11: \`docsPath\` is also a path of the operation \`${id}\`; write another path`,
  );
});

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
