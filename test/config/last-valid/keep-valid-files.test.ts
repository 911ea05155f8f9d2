import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  type KeepingSettings,
  loadKeepingValid,
} from '../../../gateway/config/last-valid/keep-valid-files.ts';
import {
  apiDocument,
  type ConfigFolder,
  configFolder,
  digestOf,
  mainDocument,
} from '../../support/config-folder.ts';
import { makeCertificate } from '../../support/make-certificate.ts';

const certificate = makeCertificate();
const token = (name: string, hexDigit: string, may: string) =>
  `{ name: ${name}, sha256: ${digestOf(hexDigit)}, may: ${may} }`;
const main = `${mainDocument}listen: { tls: { cert: tls.pem, key: tls.key } }
admin: { tokens: [${token('alice', 'e', 'write')}, ${token('bob', 'f', 'write')}] }
`;
const acme = `- { id: acme, plan: free, secrets: [{ sha256: ${digestOf('a')} }, { sha256: ${digestOf('b')} }] }\n`;
const globex = `- { id: globex, plan: free, secrets: [{ sha256: ${digestOf('c')} }] }\n`;
const keys = acme + globex;
const disabled = keys.replace('id: acme', 'id: acme, disabled: true');

/**
 * Makes a folder with every kind of configuration file, and loads it. `edit` writes files, and deletes a file whose text is undefined.
 * After writing the files, `edit` loads the folder and returns the result.
 */
function startIn(files: Readonly<Record<string, string>> = {}) {
  const folder = configFolder({
    'tollgate.yaml': main,
    'keys.yaml': keys,
    'tls.pem': certificate.cert,
    'tls.key': certificate.key,
    ...files,
  });
  let inForce = load(folder, undefined);
  return {
    edit(edits: Readonly<Record<string, string | undefined>>) {
      for (const [name, text] of Object.entries(edits)) {
        if (text === undefined) rmSync(folder.pathOf(name));
        else folder.write(name, text);
      }
      inForce = load(folder, inForce);
      return viewOf(folder, inForce);
    },
  };
}

function load({ file }: ConfigFolder, inForce: KeepingSettings | undefined): KeepingSettings {
  const loaded = loadKeepingValid({ file, env: {}, before: inForce?.entries }, inForce);
  if (loaded.kind === 'invalid') throw new Error(loaded.problems[0]?.message);
  return loaded;
}

function viewOf(folder: ConfigFolder, { settings, kept }: KeepingSettings) {
  const ids = [...settings.keys.ids()];
  const free = settings.plans.get('free')?.limits;
  return {
    enabled: ids.filter((id) => settings.keys.get(id)?.disabled === false),
    secrets: ids.flatMap((id) => settings.keys.secretsOf(id).map(({ digest }) => digest[0])).join(''),
    perMinute: Array.isArray(free) ? free[0]?.max : free,
    operations: settings.operations.length,
    cert: settings.listen.tls?.cert === certificate.cert ? 'old' : 'new',
    tokens: settings.admin.tokens.map(({ name, may }) => `${name} ${may}`),
    kept: kept.map(({ file, problems: [problem], revokes }) => {
      const name = file.slice(folder.file.lastIndexOf('/') + 1);
      const place = `${problem?.file.slice(folder.file.lastIndexOf('/') + 1)}:${problem?.line}:${problem?.column}`;
      return `${name} because of ${place}${revokes ? ', revokes' : ''}`;
    }),
  };
}

const asBefore = {
  enabled: ['acme', 'globex'],
  secrets: 'abc',
  perMinute: 60,
  operations: 3,
  cert: 'old',
  tokens: ['alice write', 'bob write'],
  kept: [] as string[],
};
const [withOperation, limit70] = [
  `${apiDocument}  /more:\n    get: { operationId: more }\n`,
  main.replace('perMinute: 60', 'perMinute: 70'),
];
const brokenApi = `${apiDocument}  /more: [\n`;
const renewed = makeCertificate();

test.each([
  [
    'the main file',
    { 'tollgate.yaml': limit70.replace('plans:', 'plan:') },
    'tollgate.yaml because of tollgate.yaml:4:1',
  ],
  ['the main file, no YAML', { 'tollgate.yaml': '{' }, 'tollgate.yaml because of tollgate.yaml:1:2'],
  [
    'the main file, which is missing',
    { 'tollgate.yaml': undefined },
    'tollgate.yaml because of tollgate.yaml:1:1',
  ],
  ['the API document', { 'openapi.yaml': brokenApi }, 'openapi.yaml because of openapi.yaml:14:11'],
  [
    'the API document, which is missing',
    { 'openapi.yaml': undefined },
    'openapi.yaml because of tollgate.yaml:8:6',
  ],
  ['a certificate', { 'tls.pem': 'x' }, 'tls.pem because of tls.pem:1:1'],
  [
    'a certificate that another key belongs to',
    { 'tls.pem': renewed.cert },
    'tls.pem because of tls.key:1:1',
  ],
  ['a key of another certificate', { 'tls.key': renewed.key }, 'tls.key because of tls.key:1:1'],
])('a key can be disabled while another part is broken: %s', (_, broken, kept) => {
  const { edit } = startIn();
  expect(edit({ ...broken, 'keys.yaml': disabled })).toEqual({
    ...asBefore,
    enabled: ['globex'],
    kept: [kept],
  });
  // An edit of the keys file takes effect, although another file is still invalid.
  expect(edit({ 'keys.yaml': keys })).toEqual({ ...asBefore, kept: [kept] });
  expect(edit({ 'keys.yaml': disabled }).enabled).toEqual(['globex']);
});

test('a broken keys file keeps its last valid content as a whole, and every other file is loaded', () => {
  const { edit } = startIn();
  const half = disabled.replace('id: globex, plan: free', 'id: globex, plan: [');
  const others = {
    'tollgate.yaml': limit70,
    'openapi.yaml': withOperation,
    'tls.pem': renewed.cert,
    'tls.key': renewed.key,
  };
  const loaded = { ...asBefore, perMinute: 70, operations: 4, cert: 'new' };
  const kept = [expect.stringMatching(/^keys.yaml because of keys.yaml:2:\d+$/)];
  expect(edit({ 'keys.yaml': half, ...others })).toEqual({ ...loaded, kept });
  expect(edit({ 'keys.yaml': undefined })).toEqual({
    ...loaded,
    kept: ['keys.yaml because of tollgate.yaml:7:7'],
  });
  expect(edit({ 'keys.yaml': disabled })).toEqual({ ...loaded, enabled: ['globex'] });
});

test('a keys file that needs a plan of a broken main file can revoke keys, and add none', () => {
  const { edit } = startIn();
  const gold = '- { id: new, plan: gold, secrets: [] }\n';
  const brokenMain = main.replace('plans:\n', 'plans:\n  gold: { perMinute: 1 }\n  bad: 7\n');
  const kept = ['tollgate.yaml because of tollgate.yaml:6:8', 'keys.yaml because of keys.yaml:3:20, revokes'];
  const changed = disabled.replace('id: globex', 'id: globex, name: other') + gold;
  expect(edit({ 'tollgate.yaml': brokenMain, 'keys.yaml': changed })).toEqual({
    ...asBefore,
    enabled: ['globex'],
    kept,
  });
  // The edit removes the key globex, and replaces a secret of the key acme.
  const fewer = acme.replace(`, { sha256: ${digestOf('b')} }`, `, { sha256: ${digestOf('d')} }`) + gold;
  expect(edit({ 'keys.yaml': fewer })).toMatchObject({ enabled: ['acme'], secrets: 'ac' });
  // A syntax error in the same file does not bring back a key or a secret.
  expect(edit({ 'keys.yaml': `${keys}- {` })).toMatchObject({ enabled: ['acme'], secrets: 'ac' });
  // After the repair, the content of both files applies again.
  expect(edit({ 'keys.yaml': keys + gold })).toMatchObject({ enabled: ['acme', 'globex'], secrets: 'abc' });
  const repaired = edit({ 'tollgate.yaml': brokenMain.replace('  bad: 7\n', '') });
  expect(repaired).toEqual({ ...asBefore, enabled: ['acme', 'globex', 'new'] });
});

test('a main file that needs an operation of a broken API document can revoke its tokens and keys', () => {
  const inline = main.replace('keys: keys.yaml', `keys:\n${keys.replaceAll('- {', '  - {')}`.trimEnd());
  const { edit } = startIn({ 'tollgate.yaml': inline });
  const wantsMore = inline
    .replace('perDay: 1000 }', 'perDay: 1000, operations: [more] }')
    .replace('id: acme', 'id: acme, disabled: true')
    .replace(`, ${token('bob', 'f', 'write')}`, '')
    .replace(token('alice', 'e', 'write'), token('alice', 'e', 'read'));
  expect(edit({ 'tollgate.yaml': wantsMore, 'openapi.yaml': `${withOperation}  /x: [\n` })).toMatchObject({
    enabled: ['globex'],
    tokens: ['alice read'],
    operations: 3,
    kept: [expect.stringMatching(/^openapi.yaml/), expect.stringMatching(/^tollgate.yaml .*, revokes$/)],
  });
  expect(edit({ 'openapi.yaml': withOperation })).toMatchObject({ operations: 4, kept: [] });
});

test.each([
  [
    'a main file without the plan of a key',
    { 'tollgate.yaml': main.replace('free:', 'free2:') },
    'tollgate.yaml',
  ],
  [
    'an API document without the operation of a key',
    { 'openapi.yaml': apiDocument.replace('createPet', 'other') },
    'openapi.yaml',
  ],
  [
    'an API document with an unknown upstream',
    {
      'openapi.yaml': apiDocument.replace(
        'operationId: createPet',
        'operationId: createPet, x-upstream: other',
      ),
    },
    'openapi.yaml',
  ],
])('a file that no longer fits the others keeps its last valid content: %s', (_, edits, kept) => {
  const scoped = `${keys}- { id: scoped, plan: free, operations: [createPet], secrets: [] }\n`;
  const { edit } = startIn({ 'keys.yaml': scoped });
  expect(
    edit({ ...edits, 'keys.yaml': scoped.replace('id: acme', 'id: acme, disabled: true') }),
  ).toMatchObject({
    enabled: ['globex', 'scoped'],
    perMinute: 60,
    kept: expect.arrayContaining([expect.stringMatching(`^${kept} `)]),
  });
});

test('a load reads each file once, so an edit during the load is left to the next load', () => {
  const upstreams = (name: string) =>
    mainDocument.replace(/^upstream: .*$/m, `upstreams: { ${name}: { url: http://${name} } }`);
  const document = (name: string) =>
    apiDocument.replace('operationId: listPets', `operationId: listPets, x-upstream: ${name}`);
  const folder = configFolder({ 'tollgate.yaml': upstreams('before'), 'openapi.yaml': document('before') });
  const inForce = load(folder, undefined);
  folder.write('openapi.yaml', document('after'));
  const onRead = (name: string) => {
    if (name.endsWith('openapi.yaml')) folder.write('tollgate.yaml', upstreams('after'));
  };
  const during = loadKeepingValid({ file: folder.file, env: {}, onRead }, inForce);
  expect(during).toMatchObject({ version: inForce.version, kept: [{ file: folder.pathOf('openapi.yaml') }] });
  expect(during.digests.get(folder.file)).toBe(inForce.digests.get(folder.file));
  expect(load(folder, during.kind === 'valid' ? during : undefined)).toMatchObject({
    kept: [],
    settings: { upstreams: [{ name: 'after' }] },
  });
});

test('a broken file without valid content before is an error', () => {
  const { file } = configFolder({ 'openapi.yaml': '{' });
  expect(loadKeepingValid({ file, env: {} }, undefined)).toMatchObject({ kind: 'invalid' });
});
