import { symlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { configFolder, keysDocument, mainDocument } from '../../support/config-folder.ts';

/** The API document that the gateway serves if its configuration files have the given texts. */
function published(options: { main?: string; api?: string; files?: Record<string, string> } = {}) {
  const {
    main = mainDocument,
    api = 'paths:\n  /pets: { get: { operationId: listPets } }\n',
    files,
  } = options;
  const { file } = configFolder({
    'tollgate.yaml': `${main}docsPath: /docs\n`,
    'openapi.yaml': api,
    ...files,
  });
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'invalid') throw new Error(formatProblems(loaded.problems));
  return JSON.parse(loaded.settings.docs?.document ?? '');
}

test('the published document has the base URL as its server, whatever servers the file names', () => {
  const api = 'servers: [{ url: http://elsewhere }]\npaths: { /pets: { get: { operationId: listPets } } }\n';
  expect(published({ api }).servers).toEqual([{ url: 'https://api.example.com/v1' }]);
  expect(published({ main: mainDocument.replace('/v1', '/v1/') }).servers).toEqual([
    { url: 'https://api.example.com/v1' },
  ]);
});

test('the published document has a parameter for the rest of a path in the form of OpenAPI', () => {
  const paths = ['/files/{path+}', '/v1/{+name}', '/a/{x+}', '/a/{x}', '/b/{+x}/c'];
  const api = `paths:\n${paths.map((path, i) => `  ${path}: { get: { operationId: op${i} } }\n`).join('')}`;
  const { paths: shown } = published({ api });
  expect(Object.keys(shown)).toEqual(['/files/{path}', '/v1/{name}', '/a/{x+}', '/a/{x}', '/b/{+x}/c']);
  expect(shown['/files/{path}']).toEqual({ get: { operationId: 'op0' } });
});

test('the description of the published document ends with the limits of each plan', () => {
  const main = `${mainDocument.replace('enterprise: custom', 'burst: { perSecond: 5, perMonth: 1000000, concurrent: 10, operations: [listPets] }\n  enterprise: custom')}`;
  const api = 'info: { description: A store. }\npaths: { /pets: { get: { operationId: listPets } } }\n';
  expect(published({ main, api }).info.description).toBe(`A store.

## Plans

| Plan | Requests per second | Requests per minute | Requests per day | Requests per month | Requests in progress | Operations |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
| free | unlimited | 60 | 1,000 | unlimited | unlimited | all |
| burst | 5 | unlimited | unlimited | 1,000,000 | 10 | \`listPets\` |
| enterprise | custom | custom | custom | custom | unlimited | all |`);
});

test('the published document has the limits of a plan in each period, from the present one on', () => {
  const changes =
    '[{ from: 2001-01-01, perMinute: 50 }, { from: 9000-01-01, perMinute: 40 }, { from: 9000-06-01T12:00:00Z, perDay: 1000 }]';
  const main = mainDocument.replace('enterprise: custom', `pro: { perMinute: 9, changes: ${changes} }`);
  expect(published({ main }).info.description.split('\n').slice(-4)).toEqual([
    '| free | 60 | 1,000 |',
    '| pro, until 9000-01-01 | 50 | unlimited |',
    '| pro, from 9000-01-01 until 9000-06-01 12:00 UTC | 40 | unlimited |',
    '| pro, from 9000-06-01 12:00 UTC | unlimited | 1,000 |',
  ]);
});

test('the published document has the groups of each plan in each period, with their operations and limits', () => {
  const reports = (limits: string) => `groups: { reports: { operations: [listPets], ${limits} } }`;
  const main = mainDocument.replace(
    'enterprise: custom',
    `pro: { perMinute: 9, ${reports('perMinute: 5, perHour: 2000')}, changes: [{ from: 9000-01-01, perMinute: 9, ${reports('perDay: 1')} }] }`,
  );
  const api = 'info: {}\npaths: { /pets: { get: { operationId: listPets } } }\n';
  expect(published({ main, api }).info.description.split('\n').slice(-7)).toEqual([
    '| pro, until 9000-01-01 | 9 | unlimited |',
    '| pro, from 9000-01-01 | 9 | unlimited |',
    '',
    'Requests of some operations also count in limits of their group:',
    '',
    '- pro, until 9000-01-01, group `reports` (`listPets`): 5 a minute, 2,000 an hour',
    '- pro, from 9000-01-01, group `reports` (`listPets`): 1 a day',
  ]);
});

test('the published document keeps extensions, and has no names of upstreams and no part of a key', () => {
  const api = `x-own: 1
paths:
  /pets:
    x-item: 2
    get: { operationId: listPets, x-stability: beta, x-upstream: default, x-other: { x-upstream: kept } }
`;
  const document = published({ api });
  expect(document).toMatchObject({ 'x-own': 1, paths: { '/pets': { 'x-item': 2 } } });
  expect(document.paths['/pets'].get).toEqual({
    operationId: 'listPets',
    'x-stability': 'beta',
    'x-other': { 'x-upstream': 'kept' },
  });
  const [, id = ''] = /id: (\S+)/.exec(keysDocument) ?? [];
  const [, digest = ''] = /sha256: (\S+)/.exec(keysDocument) ?? [];
  expect([id.length > 0, digest.length]).toEqual([true, 64]);
  expect(JSON.stringify(document)).not.toContain(id);
  expect(JSON.stringify(document)).not.toContain(digest);
});

test('the name of an upstream is in no path item of the components either', () => {
  const document = published({
    api: `paths:
  /pets: { $ref: '#/components/pathItems/Pets' }
components:
  pathItems:
    Pets: { get: { operationId: listPets, x-upstream: default, x-other: 1 } }
`,
  });
  expect(document.components.pathItems.Pets.get).toEqual({ operationId: 'listPets', 'x-other': 1 });
  expect(JSON.stringify(document)).not.toContain('x-upstream');
});

test('a document that aliases make too large is refused, and the report names the line', () => {
  const long = 'x'.repeat(100_000);
  const aliases = Array.from({ length: 400 }, () => '*long').join(', ');
  const { file, pathOf } = configFolder({
    'tollgate.yaml': `${mainDocument}docsPath: /docs\n`,
    'openapi.yaml': `x-long: &long ${long}\nx-all: [${aliases}]\npaths: { /pets: { get: { operationId: listPets } } }\n`,
  });
  const loaded = loadSettings({ file, env: {} });
  const report = loaded.kind === 'invalid' ? formatProblems(loaded.problems) : '';
  expect(report.replaceAll(pathOf(''), '')).toContain(
    'tollgate.yaml:9:11: the API document is longer than 33554432 characters as JSON; remove `docsPath`',
  );
});

test('all files of the document are in it, and every reference leads to its place there', () => {
  const api = `paths:
  /pets: { $ref: paths/pets.yaml }
  /toys: { get: { $ref: 'paths/pets.yaml#/get' } }
components:
  schemas:
    Here: { $ref: '#/components/schemas/Pet' }
    Pet: { $ref: schemas/pet.yaml }
    Web: { $ref: 'https://example.com/web.yaml' }
`;
  const document = published({
    api,
    files: {
      'paths/pets.yaml':
        'get: { operationId: listPets, x-upstream: default, schema: { $ref: "../schemas/pet.yaml#/properties/a~1b" } }\n',
      'schemas/pet.yaml':
        'x-upstream: secret\nproperties: { a/b: { type: string }, next: { $ref: "#" }, first: { $ref: "../openapi.yaml#/components/schemas/Here" } }\n',
    },
  });
  const list = {
    operationId: 'listPets',
    schema: { $ref: '#/x-files/1/properties/a~1b' },
  };
  expect(document.paths).toEqual({ '/pets': { get: list }, '/toys': { get: list } });
  expect(document.components.schemas).toEqual({
    Here: { $ref: '#/components/schemas/Pet' },
    Pet: { $ref: '#/x-files/1' },
    Web: { $ref: 'https://example.com/web.yaml' },
  });
  expect(document['x-files']).toEqual({
    1: {
      properties: {
        'a/b': { type: 'string' },
        next: { $ref: '#/x-files/1' },
        first: { $ref: '#/components/schemas/Here' },
      },
    },
  });
});

test('a file of the document that is missing is reported where it is named', () => {
  const api = 'paths: { /pets: { get: { operationId: listPets, schema: { $ref: pet.yaml } } } }';
  expect(() => published({ api })).toThrow(/openapi\.yaml:1:\d+: this file does not exist/);
});

test.each([
  ['a parent folder', '../../../../../../etc/secret.yaml', /leads out of the folders/],
  ['a symbolic link to another folder', 'link.yaml', /leads out of the folders/],
  ['the configuration', 'tollgate.yaml', /leads to a file of the configuration/],
  ['the keys', './sub/../keys.yaml', /leads to a file of the configuration/],
  ['a private key', 'tls.pem', /only if its name ends in \.yaml, \.yml or \.json/],
])('a reference to %s is refused, so that the API reference cannot publish it', (_, reference, message) => {
  const api = `paths: { /pets: { get: { operationId: listPets, schema: { $ref: '${reference}' } } } }`;
  const { file, pathOf } = configFolder({
    'tollgate.yaml': `${mainDocument}docsPath: /docs\n`,
    'openapi.yaml': api,
    'tls.pem': 'private',
  });
  const outside = configFolder({ 'secret.yaml': 'secret: 1' });
  symlinkSync(outside.pathOf('secret.yaml'), pathOf('link.yaml'));
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'valid') throw new Error(loaded.settings.docs?.document);
  expect(loaded.problems.map((problem) => problem.message)).toEqual([expect.stringMatching(message)]);
});

test('a document may refer to files of the folder of the configuration', () => {
  const main = mainDocument.replace('api: openapi.yaml', 'api: spec/openapi.yaml');
  const files = {
    'spec/openapi.yaml': 'paths: { /pets: { $ref: ../shared/pets.json } }',
    'shared/pets.json': '{ "get": { "operationId": "listPets" } }',
  };
  expect(published({ main, files }).paths).toEqual({ '/pets': { get: { operationId: 'listPets' } } });
});
