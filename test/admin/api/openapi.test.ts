import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type * as z from 'zod';
import type { Gateway } from '../../../gateway/server/gateway.ts';
import type { Settings } from '../../../gateway/shared/model.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { allRoutes, coreRoutes } from '../../support/all-routes.ts';
import { createGateway } from '../../support/create-gateway.ts';
import {
  ajvOfDocument as ajv,
  apiBounds as bounds,
  described as document,
  faultsOf,
  instantsOutOfPlace,
} from '../../support/described-replies.ts';
import { makeCustomKey, makeKey } from '../../support/gateway-process.ts';
import { openApiFaults } from '../../support/openapi-faults.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { withinOneMinute } from '../../support/within-one-minute.ts';

// biome-ignore lint/suspicious/noExplicitAny: a parsed document
type Json = any;

const operations = Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
  Object.entries<Json>(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    operation,
  })),
);
const routes = await allRoutes(bounds);
const routesOfCore = await coreRoutes(bounds);

const { token, entry } = makeToken('write');
const key = makeKey({ plan: 'free' });
const big = makeCustomKey(10, 100);
const tight = { perMinute: 60, operations: ['listPets'] };

/** Settings of gateways with Redis. Each optional member is present in one of them and absent in another. */
const starts: Record<string, () => Promise<Settings>> = {
  'with few settings': () =>
    settingsOf({
      upstream: { url: backend.url },
      redis: { url: redisUrl(), prefix: freshPrefix() },
      plans: { free: { perMinute: 60, trial: { perMinute: 40 } }, enterprise: 'custom' },
      keys: [key.entry],
      admin,
    }),
  'with many settings': () =>
    settingsOf({
      upstreams: {
        store: { url: backend.url, timeouts: { connect: '1s' } },
        gone: { url: 'http://gone.invalid:1' },
      },
      plans: { free: { ...tight, trial: { perMinute: 40, perDay: 1_000 } }, enterprise: 'custom' },
      keys: [
        { ...key.entry, name: 'Ada', secrets: [{ ...key.entry.secrets[0], expires: '2036-01-31' }] },
        big.entry,
      ],
      redis: { url: redisUrl(), prefix: freshPrefix() },
      cors: { origins: ['https://app.example.com'] },
      hsts: { maxAge: '365d' },
      docsPath: '/docs',
      admin: { ...admin, hosts: ['gateway'] },
    }),
};
const admin = { host: '127.0.0.1', port: 0, tokens: [entry] };

let backend: RecordingBackend;
beforeAll(async () => {
  backend = await startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('[]')) });
});
afterAll(() => backend.close());

/** The value for each parameter of a path. */
const samples: Record<string, string> = { id: key.entry.id, operationId: 'listPets', name: 'free' };
const concrete = (path: string) => path.replaceAll(/\{(\w+)\}/g, (_, name) => samples[name] ?? 'none');

describe.each(Object.entries(starts))('a gateway %s', (kind, settingsFor) => {
  let gateway: Gateway;
  let port: number;
  let settings: Settings;
  beforeAll(async () => {
    settings = { ...(await settingsFor()), directory: true };
    gateway = createGateway({
      settings,
      log: { logger: pino({ level: 'silent' }), access: () => {} },
      bounds: tunedBounds({ ...patientStore, simulationTimeoutMs: 60_000 }),
    });
    const { listen, admin } = await gateway.start();
    port = admin.port;
    const headers = { authorization: `Bearer ${key.secret}` };
    await withinOneMinute(5_000);
    for (let request = 0; request < 3; request++)
      await fetch(`http://127.0.0.1:${listen.port}/v1/pets`, { headers });
    gateway.reload(settings);
    gateway.reportFailedReload('gateway.yaml:1:1: not valid', '0123456789ab');
    gateway.reload(settings);
  });
  afterAll(() => gateway.drain({ graceMs: 0 }));

  const gets = routesOfCore.filter(({ method }) => method === 'GET');

  it.each(gets.map(({ path }) => path))('answers GET %s as described, member by member', async (path) => {
    const ask = () => askAdmin(port, `/api/v1${concrete(path)}`, { token });
    if (path === '/changes') await expect.poll(async () => (await ask()).body.changes.length).toBe(3);
    const reply = await ask();
    expect([reply.status, faultsOf(reply, 'GET', path)]).toEqual([200, []]);
    expect(instantsOutOfPlace(reply.body)).toEqual([]);
    if (kind === 'with many settings' && path === '/settings') {
      const { redis, keys, plans } = reply.body;
      expect([redis.onFailure, plans[1].operations]).toEqual(['local', ['listPets']]);
      expect(keys.map(({ id }: Json) => id)).toEqual([big, key].map(({ entry }) => entry.id).sort());
    }
  });

  it.each(gets.map(({ path }) => path))('answers errors of GET %s as described', async (path) => {
    const url = `/api/v1${concrete(path)}`;
    const replies = [
      await askAdmin(port, url),
      await askAdmin(port, `${url}?nothing=1`, { token }),
      await askAdmin(port, url, { token, headers: { host: 'evil.example' } }),
      await askAdmin(port, url, { token, headers: { origin: 'https://evil.example' } }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([401, 400, 421, 403]);
    for (const reply of replies) expect(faultsOf(reply, 'GET', path)).toEqual([]);
  });

  it('answers every method that changes something as described, member by member', async () => {
    const untilAt = new Date(Date.now() + 60_000).toISOString();
    const secrets = [{ sha256: digestSecret('moved'), expiresAt: untilAt }];
    const issued = {
      id: 'issued',
      plan: 'enterprise',
      name: 'N',
      limits: { perDay: 5 },
      operations: ['listPets'],
    };
    const calls: [string, string, unknown?][] = [
      ['POST', '/keys', { ...issued, expiresAt: untilAt }],
      ['PATCH', '/keys/{id}', { name: null, limits: { perDay: 6, perMinute: 2 } }],
      ['POST', '/keys/{id}/secrets', { overlap: '1h' }],
      ['POST', '/keys/{id}/grant', { limits: { perDay: 50 }, untilAt }],
      ['POST', '/keys/{id}/ban', { untilAt, reason: 'asked by mail' }],
      ['POST', '/keys/{id}/unban'],
      ['DELETE', '/keys/{id}/grant'],
      ['POST', '/whoami', { sha256: key.entry.secrets[0]?.sha256 }],
      ['POST', '/whoami', { sha256: digestSecret('nobody') }],
      [
        'POST',
        '/directory',
        {
          keys: [
            { id: 'moved', plan: 'free', secrets },
            { ...issued, secrets: [] },
          ],
        },
      ],
      ['POST', '/whoami', { sha256: digestSecret('moved') }],
      ['GET', '/leaks'],
      ['GET', '/directory'],
      ['POST', '/directory/ids', { ids: ['moved', 'nobody', key.entry.id] }],
      ['GET', '/keys/{id}'],
      ['POST', '/changes', { action: 'revoke', key: 'acme', after: { disabled: true } }],
      ['DELETE', '/keys/{id}/secrets/{digest}'],
      ['DELETE', '/keys/{id}'],
    ];
    const statuses: number[] = [];
    let digest = '';
    for (const [method, path, json] of calls) {
      const url = `/api/v1${path.replace('{id}', 'issued').replace('{digest}', digest)}`;
      const reply = await askAdmin(port, url, { token, method, json });
      if (path === '/keys/{id}/secrets') digest = reply.body.secrets[0].digestStart;
      statuses.push(reply.status);
      const faults = reply.status === 204 ? [] : faultsOf(reply, method, path);
      expect([method, path, faults, instantsOutOfPlace(reply.body)]).toEqual([method, path, [], []]);
    }
    expect(statuses).toEqual([
      201, 200, 201, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 204, 200, 200,
    ]);
    const called = new Set(calls.map(([method, path]) => `${method} ${path}`));
    const changing = routesOfCore.filter(({ method, needs }) => method !== 'GET' && needs === 'write');
    const missing = changing.map(({ method, path }) => `${method} ${path}`).filter((one) => !called.has(one));
    expect(missing).toEqual([]);
  });

  it('shows every setting in /settings', async () => {
    const { body } = await askAdmin(port, '/api/v1/settings', { token });
    // `/settings` lists a single `upstream` in `upstreams`.
    const { upstream: _, ...stated } = settings.stated;
    expect(Object.keys(body)).toEqual(expect.arrayContaining(['upstreams', ...Object.keys(stated)]));
    expect(body.docsPath).toBe(settings.docs?.path);
  });
});

it('a gateway without Redis answers as described', async () => {
  const gateway = createGateway({
    settings: await settingsOf({
      upstream: { url: backend.url },
      plans: { free: { perMinute: 60, trial: { perMinute: 40 } } },
      keys: [key.entry],
      admin,
    }),
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds(patientStore),
  });
  const { port } = (await gateway.start()).admin;
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  for (const { path } of routesOfCore.filter(({ method }) => method === 'GET')) {
    const reply = await askAdmin(port, `/api/v1${concrete(path)}`, { token });
    // The gateway has no key directory.
    const status = path === '/directory' ? 409 : 200;
    expect([path, reply.status, faultsOf(reply, 'GET', path)]).toEqual([path, status, []]);
  }
});

describe('the document', () => {
  it('describes every route, and no other', () => {
    const described = operations.map(({ method, path }) => `${method} ${path}`);
    expect(described.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
  });

  it('describes the parameters of every path template', () => {
    for (const { path, operation } of operations) {
      const inPath = parametersOf(operation)
        .filter((one: Json) => one.in === 'path')
        .map(({ name }: Json) => `{${name}}`);
      expect([path, inPath]).toEqual([path, path.match(/\{\w+\}/g) ?? []]);
    }
  });

  it('describes every query parameter as the gateway reads it', () => {
    const faults = routes.flatMap(({ method, path, query }) =>
      parametersOf(document.paths[path][method.toLowerCase()])
        .filter((one: Json) => one.in === 'query')
        .flatMap(({ name, schema }: Json) => {
          const parser = query.shape[name] as z.ZodType;
          const isDescribed = ajv.compile(schema);
          return candidatesOf(schema)
            .filter((text) => isDescribed(sentValue(text, schema)) !== parser.safeParse(text).success)
            .map((text) => `${path} ${name}=${text}`);
        }),
    );
    expect(faults).toEqual([]);
  });

  it('refers to every part that it describes, and describes every one that it refers to', () => {
    const text = JSON.stringify(document);
    const references = [...text.matchAll(/"#\/components\/(\w+\/[\w-]+)"/g)].map(([, name]) => name);
    const described = Object.entries<object>(document.components)
      .filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, parts]) => Object.keys(parts).map((name) => `${kind}/${name}`));
    expect([...new Set(references)].sort()).toEqual(described.sort());
  });

  it('passes the linters of OpenAPI', () => {
    expect(openApiFaults(document)).toEqual([]);
    for (const { operation } of operations) {
      for (const { description } of parametersOf(operation)) expect(description).toMatch(/\.$/);
    }
  });
});

/** The value that a client means by a text of a query, as the schema describes it (RFC 6570: `form` without `explode`). */
function sentValue(text: string, { type, items }: Json): unknown {
  if (type === 'integer') return /^\d+$/.test(text) ? Number(text) : text;
  return type === 'array' ? text.split(',').map((one) => sentValue(one, items)) : text;
}

/** Texts that a parameter accepts, and texts that it refuses. */
function candidatesOf(schema: Json): readonly string[] {
  const { minimum = 0, maximum = 0, maxLength = 9 } = schema;
  const words: string[] = schema.enum ?? schema.items?.enum ?? [];
  return [
    ...['', '0', '-1', '1.5', ' 1', '1e3', 'x', 'x,y', ',', '{}', 'true', 'null'],
    ...[
      '2026-11',
      '2026-13',
      '2026-11-22',
      '2026-11-31',
      '2026-11-22T10:31:00Z',
      '2026-11-22T10:31:00+02:00',
    ],
    ...['2026-11-22T10:31:00', '2026-11-22T25:00:00Z', '22.11.2026'],
    ...[minimum - 1, minimum, maximum, maximum + 1].map(String),
    ...['x'.repeat(maxLength), 'x'.repeat(maxLength + 1)],
    ...words,
    ...words.map((word) => word.toUpperCase()),
    ...[words.slice(0, 2).join(','), `${words.at(0)},${words.at(0)}`, `${words.at(0)},`, words.join(',')],
  ];
}

/** The parameters of an operation, including shared parameters to which the operation refers by `$ref`. */
function parametersOf({ parameters = [] }: Json): readonly Json[] {
  return parameters.map(({ $ref, ...own }: Json) =>
    $ref === undefined ? own : document.components.parameters[$ref.split('/').at(-1)],
  );
}
