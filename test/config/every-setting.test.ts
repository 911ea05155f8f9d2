import { expect, it, test } from 'vitest';
import { stringify } from 'yaml';
import { settingsText } from '../../gateway/admin/settings/settings-view.ts';
import { operationSchema } from '../../gateway/config/api/operation-schema.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { settingsSchema } from '../../gateway/config/schema/settings-schema.ts';
import { limitFieldNames } from '../../gateway/keys/limits/limit-fields.ts';
import { marksIn } from '../../gateway/shared/schema/marks.ts';
import { capabilityCases } from '../support/capability-cases.ts';
import { apiDocument, configFolder, digestOf } from '../support/config-folder.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { settingPaths } from '../support/setting-paths.ts';

type Members = Readonly<Record<string, unknown>>;
const ofCapabilities = await capabilityCases();
const [one, other] = [makeCertificate(), makeCertificate()];
const files = {
  'openapi.yaml': apiDocument,
  'other.yaml': apiDocument,
  'one.pem': one.cert,
  'one.key': one.key,
  'other.pem': other.cert,
  'other.key': other.key,
  password: 'not-a-secret',
  'keys.yaml': '[]\n',
  ...Object.assign({}, ...ofCapabilities.map((cases) => cases.files)),
};
const reports = (perMinute: number) => ({ reports: { operations: ['listPets'], perMinute } });

const base: Members = {
  environment: 'test',
  baseUrl: 'https://api.example.com/v1',
  upstream: { url: 'http://backend:3000' },
  plans: { free: { perMinute: 60 }, enterprise: 'custom' },
  keys: [],
  api: 'openapi.yaml',
  redis: { url: 'redis://redis:6379' },
};
const pair = (name: string) => ({ cert: `${name}.pem`, key: `${name}.key` });
const token = { name: 'alice', sha256: digestOf('a'), may: 'read' };
const url = 'rediss://redis:6379';
const sentinel = { name: 'main', hosts: ['sentinel-1:26379'] };
const https = { url: 'https://backend:3000' };
const free = (members: Members) => ({ plans: { free: members } });
const tried = (trial: Members) => free({ perMinute: 60, trial });
const later = (limits: Members, from = '2100-01-01') =>
  free({ perMinute: 60, changes: [{ from, ...limits }] });

/**
 * Two configurations that differ in one setting. The members of the first configuration override `base`, and the members of the second
 * configuration override the first configuration. A setting that is not in the table gets a generated value.
 */
const differing: Readonly<Record<string, readonly [before: Members, after: Members]>> = {
  ...Object.assign({}, ...ofCapabilities.map(({ settings }) => settings)),
  environment: [{}, { environment: 'other' }],
  baseUrl: [{}, { baseUrl: 'https://api.example.com/v2' }],
  workers: [{ redis: { url } }, { redis: { url }, workers: 2 }],
  'listen.tls.cert': [{ listen: { tls: pair('one') } }, { listen: { tls: pair('other') } }],
  'listen.tls.key': [{ listen: { tls: pair('one') } }, { listen: { tls: pair('other') } }],
  'admin.tls.cert': [{ admin: { tls: pair('one') } }, { admin: { tls: pair('other') } }],
  'admin.tls.key': [{ admin: { tls: pair('one') } }, { admin: { tls: pair('other') } }],
  'admin.tokens.[].name': [
    { admin: { tokens: [token] } },
    { admin: { tokens: [{ ...token, name: 'bob' }] } },
  ],
  'admin.tokens.[].sha256': [
    { admin: { tokens: [token] } },
    { admin: { tokens: [{ ...token, sha256: digestOf('c') }] } },
  ],
  'admin.tokens.[].may': [
    { admin: { tokens: [token] } },
    { admin: { tokens: [{ ...token, may: 'write' }] } },
  ],
  'admin.hosts': [{}, { admin: { hosts: ['gateway'] } }],
  'redis.url': [{ redis: { url } }, { redis: { url: 'rediss://other:6379' } }],
  'redis.cluster': [{ redis: { cluster: [url] } }, { redis: { cluster: ['rediss://other:6379'] } }],
  'redis.sentinel.name': [{ redis: { sentinel } }, { redis: { sentinel: { ...sentinel, name: 'other' } } }],
  'redis.sentinel.hosts': [
    { redis: { sentinel } },
    { redis: { sentinel: { ...sentinel, hosts: ['sentinel-2:26379'] } } },
  ],
  'redis.ca': [{ redis: { url } }, { redis: { url, ca: 'one.pem' } }],
  'redis.cert': [{ redis: { url, ...pair('one') } }, { redis: { url, ...pair('other') } }],
  'redis.key': [{ redis: { url, ...pair('one') } }, { redis: { url, ...pair('other') } }],
  'redis.sentinel.tls': [{ redis: { sentinel } }, { redis: { sentinel: { ...sentinel, tls: true } } }],
  'redis.prefix': [{ redis: { url } }, { redis: { url, prefix: 'other' } }],
  'redis.onFailure': [{ redis: { url } }, { redis: { url, onFailure: 'refuse' } }],
  'upstream.url': [{}, { upstream: { url: 'http://other:3000' } }],
  'upstream.tls.ca': [{ upstream: https }, { upstream: { ...https, tls: { ca: 'one.pem' } } }],
  'upstream.tls.serverName': [{ upstream: https }, { upstream: { ...https, tls: { serverName: 'other' } } }],
  'upstream.tls.cert': [
    { upstream: { ...https, tls: pair('one') } },
    { upstream: { ...https, tls: pair('other') } },
  ],
  'upstream.tls.key': [
    { upstream: { ...https, tls: pair('one') } },
    { upstream: { ...https, tls: pair('other') } },
  ],
  'upstream.health': [{ upstream: https }, { upstream: { ...https, health: '/other' } }],
  'upstream.host': [{ upstream: https }, { upstream: { ...https, host: 'target' } }],
  'upstream.encodedSlashes': [{ upstream: https }, { upstream: { ...https, encodedSlashes: 'forward' } }],
  'upstream.timeouts.connect': [{ upstream: https }, { upstream: { ...https, timeouts: { connect: '1s' } } }],
  'upstream.timeouts.headers': [{ upstream: https }, { upstream: { ...https, timeouts: { headers: '1s' } } }],
  'upstream.timeouts.total': [{ upstream: https }, { upstream: { ...https, timeouts: { total: '1h' } } }],
  'plans.*.custom': [free({ perMinute: 60 }), free({ custom: true })],
  'plans.*.changes': [free({ perMinute: 60 }), later({ perMinute: 40 })],
  'plans.*.changes.[].from': [later({ perMinute: 40 }), later({ perMinute: 40 }, '2101-01-01')],
  ...Object.fromEntries(
    limitFieldNames.map((field) => [
      `plans.*.changes.[].${field}`,
      [later({ [field]: 40 }), later({ [field]: 41 })] as const,
    ]),
  ),
  'plans.*.trial': [free({ perMinute: 60 }), tried({ perMinute: 40 })],
  ...Object.fromEntries(
    limitFieldNames.map((field) => [
      `plans.*.trial.${field}`,
      [tried({ [field]: 40 }), tried({ [field]: 41 })] as const,
    ]),
  ),
  'plans.*.groups': [
    free({ perMinute: 60, groups: reports(5) }),
    free({ perMinute: 60, groups: reports(6) }),
  ],
  'plans.*.changes.[].groups': [
    later({ perMinute: 40, groups: reports(5) }),
    later({ perMinute: 40, groups: reports(6) }),
  ],
  'plans.*.trial.groups': [
    tried({ perMinute: 40, groups: reports(5) }),
    tried({ perMinute: 40, groups: reports(6) }),
  ],
  'plans.*.operations': [free({ perMinute: 60 }), free({ perMinute: 60, operations: ['listPets'] })],
  'keys.file': [{}, { keys: { file: 'keys.yaml' } }],
  'keys.directory': [{ keys: { file: 'keys.yaml' } }, { keys: { file: 'keys.yaml', directory: true } }],
  api: [{}, { api: 'other.yaml' }],
  'cors.origins': [{}, { cors: { origins: ['https://app.example.com'] } }],
  'hsts.maxAge': [{ listen: { tls: pair('one') }, hsts: { maxAge: '1d' } }, { hsts: { maxAge: '2d' } }],
  'hsts.includeSubDomains': [
    { listen: { tls: pair('one') }, hsts: { maxAge: '1d' } },
    { hsts: { maxAge: '1d', includeSubDomains: true } },
  ],
};

/** Settings of which `/settings` shows only that they are set, because they are secrets or belong to secrets. */
const notShown = marksIn(settingsSchema).flatMap(({ path, mark }) =>
  mark.secret === true ? [path.join('.')] : [],
);

/** `upstreams` has the same members as `upstream`. `/test/keys/every-member.test.ts` tests the members of a key. */
const paths = settingPaths().filter((path) => !/^(upstreams|keys\.\[\])\./.test(path));

it('every row of the tables is a setting of the schema', () => {
  const rows = Object.keys(differing);
  expect(rows.filter((row) => !paths.includes(row))).toEqual([]);
});

const candidates = ['/noted', '7s', '7h', '::1', 7, true, ['noted'], ['192.0.2.1'], ['listPets'], 'noted'];

/** Returns the configuration with another value at the path of a setting. */
function withValue(config: Members, [name = '', ...rest]: readonly string[], value: unknown): Members {
  const key = name === '*' ? 'free' : name;
  return {
    ...config,
    [key]: rest.length === 0 ? value : withValue((config[key] ?? {}) as Members, rest, value),
  };
}

/** Returns `base` and the first valid configuration with another value of the setting. */
function generated(path: string): readonly [Members, Members] {
  const others = candidates.map((value) => withValue(base, path.split('.'), value));
  const other = others.find((config) => load(config).kind === 'valid');
  if (other === undefined) throw new Error(`no candidate is a valid ${path}: add a candidate, or a row`);
  return [{}, other];
}

test.each(paths.filter((path) => Object.hasOwn(differing, path) || !notShown.includes(path)))(
  '/settings shows a changed %s',
  async (path) => {
    const [before, after] = differing[path] ?? generated(path);
    const first = { ...base, ...before };
    expect(await shown({ ...first, ...after })).not.toEqual(await shown(first));
  },
);

const deprecated = { operationId: 'old', deprecated: true, 'x-deprecated-since': '2026-11-20' };
const sunset = { ...deprecated, 'x-deprecated-sunset': '2030-12-05' };

/** Two operations that differ in one member. A member that is not in the table gets a generated value. */
const operations: Readonly<Record<string, readonly [before: Members, after: Members]>> = {
  ...Object.assign({}, ...ofCapabilities.map(({ operations }) => operations)),
  operationId: [{ operationId: 'a' }, { operationId: 'b' }],
  deprecated: [deprecated, { operationId: 'old' }],
  'x-deprecated-since': [deprecated, { ...deprecated, 'x-deprecated-since': '2026-11-21' }],
  'x-deprecated-sunset': [deprecated, sunset],
  'x-deprecated-successor': [deprecated, { ...deprecated, 'x-deprecated-successor': 'next' }],
  'x-after-sunset': [sunset, { ...sunset, 'x-after-sunset': 'serve' }],
  'x-stability': [{ operationId: 'a' }, { operationId: 'a', 'x-stability': 'beta' }],
  'x-upgrade': [{ operationId: 'a' }, { operationId: 'a', 'x-upgrade': 'websocket' }],
  'x-upstream': [{ operationId: 'a' }, { operationId: 'a', 'x-upstream': 'other' }],
};

const memberNames = Object.keys(operationSchema.shape);

/** Returns an operation without the member, and an operation with the first candidate that the schema accepts. */
function generatedOperation(name: string): readonly [Members, Members] {
  const value = candidates.find((one) => operationSchema.safeParse({ [name]: one }).success);
  if (value === undefined) throw new Error(`no candidate is a valid ${name}: add a candidate, or a row`);
  return [{ operationId: 'a' }, { operationId: 'a', [name]: value }];
}

test.each(memberNames)('/settings shows a changed %s of an operation', async (name) => {
  const upstreams = { store: { url: 'http://store:3000' }, other: { url: 'http://other:3000' } };
  const { upstream: _upstream, ...rest } = base;
  const withOperation = (operation: Members) => {
    const paths = { '/a': { get: operation }, '/next': { get: { operationId: 'next' } } };
    const info = { title: 'Test', version: '1.0.0' };
    const document = JSON.stringify({ openapi: '3.1.0', info, paths });
    return shown({ ...rest, upstreams }, { 'openapi.yaml': document });
  };
  const [before, after] = operations[name] ?? generatedOperation(name);
  expect(await withOperation(after)).not.toEqual(await withOperation(before));
});

/** Returns the response of `/settings` without the digest of the files. */
async function shown(config: Members, edited: Readonly<Record<string, string>> = {}): Promise<Members> {
  const loaded = load(config, edited);
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.map(({ message }) => message).join('\n'));
  const { version: _version, ...members } = JSON.parse(await settingsText(loaded.settings));
  return members;
}

function load(config: Members, edited: Readonly<Record<string, string>> = {}) {
  const { file } = configFolder({ ...files, 'tollgate.yaml': stringify(config), ...edited });
  return loadSettings({ file, env: {} });
}
