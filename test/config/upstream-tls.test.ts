import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { createAuthority } from '../support/certificates.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

const authority = createAuthority();
const own = authority.issue({ names: ['gateway.test'] });
const other = authority.issue({ names: ['gateway.test'] });
const encrypted = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'open sesame' },
}).privateKey;

const files = { 'ca.pem': authority.cert, 'cert.pem': own.cert, 'key.pem': own.key };

function load(upstream: string, overrides: Readonly<Record<string, string>> = {}) {
  const folder = configFolder({
    'tollgate.yaml': mainDocument.replace(/upstream: .*\n/, `upstream: ${upstream}\n`),
    ...files,
    ...overrides,
  });
  const loaded = loadSettings({ file: folder.file, env: {} });
  const report = loaded.kind === 'invalid' ? formatProblems(loaded.problems) : '';
  return { loaded, report: report.replaceAll(folder.pathOf(''), ''), folder };
}

const all = '{ url: https://b, tls: { ca: ca.pem, serverName: s.test, cert: cert.pem, key: key.pem } }';

test('an https upstream may have its own authorities, server name, and client certificate', () => {
  const { loaded, folder } = load(all);
  expect(loaded).toMatchObject({
    settings: {
      upstreams: [
        { url: 'https://b', tls: { ca: authority.cert, serverName: 's.test', clientCertificate: own } },
      ],
    },
  });
  for (const name of Object.keys(files)) expect(loaded.digests.has(folder.pathOf(name))).toBe(true);
});

test('the TLS settings of an upstream are optional', () => {
  expect(load('{ url: https://b:8443/ }').loaded).toMatchObject({
    settings: { upstreams: [{ url: 'https://b:8443' }] },
  });
  expect(load('{ url: https://b, tls: { serverName: 10.0.0.1 } }').loaded).toMatchObject({
    settings: { upstreams: [{ tls: { serverName: '10.0.0.1' } }] },
  });
});

test('a changed certificate file of an upstream changes the version of the configuration', () => {
  const [before, after] = [load(all), load(all, { 'ca.pem': createAuthority().cert })];
  expect(before.loaded.version).not.toBe(after.loaded.version);
});

const bundle = `# The authorities of the company\n${authority.cert}\n${createAuthority().cert}`;

test('a file may have several authorities, with comments', () => {
  expect(load(all, { 'ca.pem': bundle }).report).toBe('');
});

const tls = (fields: string) => `{ url: https://b, tls: { ${fields} } }`;

test.each<[what: string, upstream: string, overrides: Readonly<Record<string, string>>, report: string]>([
  [
    'tls without https',
    '{ url: http://b, tls: { ca: ca.pem } }',
    {},
    'tollgate.yaml:3:33: `tls` needs a `url` that begins with https://',
  ],
  [
    'a certificate without its key',
    tls('cert: cert.pem'),
    {},
    'tollgate.yaml:3:42: `cert` needs `key` beside it',
  ],
  [
    'a key without its certificate',
    tls('key: key.pem'),
    {},
    'tollgate.yaml:3:41: `key` needs `cert` beside it',
  ],
  [
    'a file that is not there',
    tls('ca: no.pem'),
    {},
    'tollgate.yaml:3:40: `upstream.tls.ca`: this file does not exist',
  ],
  [
    'authorities that are none',
    tls('ca: ca.pem'),
    { 'ca.pem': 'hello' },
    'ca.pem:1:1: this file has no certificate in PEM (-----BEGIN CERTIFICATE-----)',
  ],
  [
    'one authority of two that is cut off',
    tls('ca: ca.pem'),
    { 'ca.pem': bundle.slice(0, -100) },
    'ca.pem:1:1: a certificate of this file cannot be read; is it cut off?',
  ],
  [
    'certificate and key exchanged',
    tls('cert: key.pem, key: cert.pem'),
    {},
    'key.pem:1:1: this file has no certificate in PEM (-----BEGIN CERTIFICATE-----); it has a private key: are `cert` and `key` exchanged?',
  ],
  [
    'the key of another certificate',
    all,
    { 'key.pem': other.key },
    'key.pem:1:1: this key does not belong to the (first) certificate of the other file; replace both together',
  ],
  [
    'a key with a passphrase',
    all,
    { 'key.pem': encrypted },
    'key.pem:1:1: this key is encrypted; write it without its passphrase: openssl pkey -in FILE -out NEW',
  ],
  [
    'a key that is cut off',
    all,
    { 'key.pem': own.key.slice(0, 100) },
    'key.pem:1:1: the private key of this file cannot be read; is it cut off?',
  ],
  [
    'a name with a scheme',
    tls('serverName: https://b'),
    {},
    'tollgate.yaml:3:48: `upstream.tls.serverName` must be a host name or an address',
  ],
  [
    'verification switched off',
    tls('verify: false'),
    {},
    'tollgate.yaml:3:36: this field is unknown; known here: ca, serverName, cert, key',
  ],
])('%s: the problem is reported with its place', (_what, upstream, overrides, report) => {
  expect(load(upstream, overrides).report.split('\n')[0]).toBe(report);
});

test.each([other.key, own.key.slice(0, 150), encrypted, `${own.cert}${own.key}x`])(
  'no report shows a part of a private key (%#)',
  (key) => {
    for (const fields of ['ca: key.pem', 'cert: key.pem, key: key.pem', 'cert: cert.pem, key: key.pem']) {
      const { loaded } = load(tls(fields), { 'key.pem': key });
      const shown = loaded.kind === 'invalid' ? JSON.stringify(loaded.problems) : '';
      const lines = key.split('\n').filter((line) => line !== '' && !line.startsWith('-----'));
      for (const line of lines) expect(shown).not.toContain(line.slice(0, 20));
    }
  },
);
