import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, readiness, startFleetHere } from '../support/fleet.ts';
import { makeCustomKey, makeKey, type RunningGateway } from '../support/gateway-process.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { patientStore } from '../support/tuning.ts';

/** Returns a random secret. Eight bytes of a random secret never occur in other text by chance. */
function randomSecret(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url');
}

const valid = makeCustomKey(1_000_000, 1_000_000, randomSecret());
const tight = makeCustomKey(1, 1_000, randomSecret());
const disabled = makeKey({ disabled: true }, randomSecret());
const unknown = randomSecret();
const redisPassword = randomSecret();
const reader = makeToken('read');
const writer = makeToken('write');
const tuning = { bounds: patientStore };
const secrets = [valid.secret, tight.secret, disabled.secret, unknown, redisPassword, reader.token];

let fleet: Fleet<RunningGateway>;
const responses: string[] = [];

beforeAll(async () => {
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning, onFailure: 'refuse' }],
    config: {
      keys: { file: './keys.yaml', directory: true },
      addressBucket: { perMinute: 1_000 },
      admin: { host: '127.0.0.1', port: 0, tokens: [reader.entry, writer.entry] },
    },
    files: { 'keys.yaml': [valid.entry, tight.entry, disabled.entry] },
    redisPassword,
  });
});
afterAll(() => fleet.stop());

describe('no part of a secret leaves the gateway', () => {
  it('when clients put secrets in wrong places', async () => {
    const ports = fleet.gateways.map(({ port }) => port);
    for (const [index, secret] of [valid.secret, tight.secret, disabled.secret, unknown].entries()) {
      for (const bytes of oddRequests(secret))
        responses.push(await responsesTo(ports[index % ports.length] ?? 0, bytes));
    }
    expectNoSecretIn('a response', responses.join('\n'));
    expect(responses.join('\n')).toMatch(/HTTP 200 .*HTTP 400 .*HTTP 401 .*HTTP 429 /s);
  });

  it('in /metrics, which has no digest or key id either', async () => {
    for (const { adminUrl } of fleet.gateways) {
      const { text, sum } = await readMetrics(adminUrl);
      expect(sum('tollgate_requests_total')).toBeGreaterThan(20);
      expectNoSecretIn('/metrics', text);
      expectNoDigestIn('/metrics', text);
      for (const { entry } of [valid, tight, disabled]) expect(text).not.toContain(entry.id);
    }
  });

  it('except in the response that issues it, not even after a change with a secret in a wrong member', async () => {
    const [port = 0] = fleet.gateways.map(({ adminUrl }) => Number(new URL(adminUrl).port));
    const ask = (method: string, path: string, options: object) =>
      askAdmin(port, `/api/v1${path}`, { token: writer.token, method, ...options });
    const created = await ask('POST', '/keys', { json: { id: 'issued', plan: 'free' } });
    const rotated = await ask('POST', '/keys/issued/secrets', { json: { overlap: '1h' } });
    expect([created.status, rotated.status]).toEqual([201, 201]);
    const issued: string[] = [created.body.secret, rotated.body.secret];
    secrets.unshift(...issued, writer.token);
    const texts: string[] = [];
    for (const secret of issued) {
      for (const { port } of fleet.gateways)
        texts.push(await responsesTo(port, oddRequests(secret)[0] ?? ''));
      for (const [method, path, options] of [
        ['POST', '/keys', { json: { id: 'b', plan: secret } }],
        ['POST', '/keys', { json: { id: 'b', plan: 'free', secret } }],
        ['POST', '/keys', { json: { id: 'b', plan: 'free', [secret]: 1 } }],
        ['POST', '/keys', { json: { id: 'b', plan: 'free', operations: [secret] } }],
        ['POST', '/keys', { bytes: secret, headers: { 'content-type': 'application/json' } }],
        ['POST', '/whoami', { json: { sha256: secret } }],
        ['PATCH', '/keys/issued', { json: { name: 'n' }, headers: { 'if-match': secret } }],
        ['PATCH', `/keys/${secret}`, { json: { name: 'n' } }],
        ['DELETE', `/keys/issued/secrets/${secret}`, {}],
        ['POST', '/changes', { json: { action: 'create', key: 'b', after: { note: secret } } }],
      ] as const) {
        const { status, text } = await ask(method, path, options);
        expect([method, path.slice(0, 12), status >= 400]).toEqual([method, path.slice(0, 12), true]);
        texts.push(text);
      }
      const done = await ask('PATCH', '/keys/issued', {
        json: { name: `n ${texts.length}` },
        headers: { 'idempotency-key': secret, cookie: secret },
      });
      texts.push(JSON.stringify(done.headers), done.text);
    }
    expect(texts.join('\n')).toMatch(/HTTP 200 /);
    expectNoSecretIn('a response', texts.join('\n'));
  });

  it('through the admin API, which shows only eight digits of a digest', async () => {
    for (const { adminUrl } of fleet.gateways) {
      const texts = await askEverything(Number(new URL(adminUrl).port));
      expect(texts).toContain('"digestStart"');
      expectNoSecretIn('the admin API', texts);
      expectNoDigestIn('the admin API', texts);
    }
  });

  it('when a secret is written into the configuration in place of its digest', async () => {
    await fleet.editConfig({
      keys: [valid.entry, { ...tight.entry, secrets: [{ sha256: tight.secret }] }],
    });
    for (const gateway of fleet.gateways) {
      await gateway.line(({ msg }) => String(msg).includes('not reloaded'));
      const { body, text } = await readiness(gateway);
      expect(body.status).toBe('degraded');
      expectNoSecretIn('/readyz', text);
      expectNoSecretIn('the admin API', await askEverything(Number(new URL(gateway.adminUrl).port)));
    }
  });

  it('when the password of Redis is written into a URL that cannot be read', async () => {
    await fleet.editConfig({ redis: { url: `redis://:${redisPassword}/x@127.0.0.1` } });
    for (const gateway of fleet.gateways) {
      await gateway.line(({ msg }) => String(msg).includes('`redis.url` must be'));
      const { body, text } = await readiness(gateway);
      expect(body.config.lastError).toContain('`redis.url` must be');
      expectNoSecretIn('/readyz', text);
      expectNoSecretIn('the admin API', await askEverything(Number(new URL(gateway.adminUrl).port)));
    }
  });

  it('when Redis goes away, and never into Redis', async () => {
    const dump: unknown[] = [];
    for (const key of await fleet.inspector.keys('*')) {
      dump.push(key, await contentOf(key));
    }
    expect(JSON.stringify(dump)).toContain(valid.entry.id);
    expectNoSecretIn('Redis', JSON.stringify(dump));
    await fleet.redis.kill();
    for (const gateway of fleet.gateways) {
      await gateway.line(({ msg }) => msg === 'Redis is away');
      expectNoSecretIn('/readyz', (await readiness(gateway)).text);
    }
  });

  it('in any log line', async () => {
    for (const gateway of fleet.gateways) {
      await gateway.stop('SIGTERM');
      expect(gateway.output()).toContain('"status":401');
      expectNoSecretIn('the log', gateway.output());
    }
  });
});

/**
 * Sends three requests to each GET route of the admin API: with a token, with a secret in place of the token, and with a secret in the
 * query.
 */
async function askEverything(port: number): Promise<string> {
  const document = await askAdmin(port, '/api/v1/openapi.json', { token: reader.token });
  const paths = Object.keys(document.body.paths).map((path) => path.replaceAll(/\{\w+\}/g, valid.entry.id));
  expect(paths.length).toBeGreaterThan(4);
  // `/directory` shows complete digests to a write token.
  const notTokens = secrets.filter((secret) => secret !== reader.token && secret !== writer.token);
  const texts: string[] = [];
  for (const [index, path] of paths.entries()) {
    const url = `/api/v1${path}`;
    const secret = secrets[index % secrets.length];
    const replies = [
      await askAdmin(port, url, { token: reader.token }),
      await askAdmin(port, url, { token: notTokens[index % notTokens.length] ?? '' }),
      await askAdmin(port, `${url}?${secret}=${secret}`, { token: reader.token }),
    ];
    for (const { headers, text } of replies) texts.push(JSON.stringify(headers), text);
  }
  return texts.join('\n');
}

/** The content of a Redis key of any type. */
async function contentOf(key: string): Promise<unknown> {
  const { inspector } = fleet;
  switch (await inspector.type(key)) {
    case 'hash':
      return inspector.hgetall(key);
    case 'zset':
      return inspector.zrange(key, 0, '-1');
    case 'stream':
      return inspector.xrange(key, '-', '+');
    case 'none':
      return undefined;
    default:
      return inspector.get(key);
  }
}

/** Requests of careless and malicious clients. Each request is sent on its own connection. */
function oddRequests(secret: string): string[] {
  const bearer = `Authorization: Bearer ${secret}`;
  const request = (target: string, ...fields: string[]) =>
    [`GET ${target} HTTP/1.1`, 'Host: api.test', ...fields, 'Connection: close', '', ''].join('\r\n');
  const body = JSON.stringify({ name: secret, categoryId: secret });
  return [
    request('/v1/pets', bearer),
    request('/v1/pets', `authorization: bearer ${secret}`),
    request(`/v1/pets?limit=${secret}&api_key=${secret}`, bearer),
    request(`/v1/pets?access_token=${secret}`),
    request(`/v1/pets/1#${secret}`, bearer),
    request('/v1/pets', `Authorization: Basic ${secret}`),
    request('/v1/pets', `Authorization: ${secret}`),
    request('/v1/pets', `Authorization: Bearer ${secret} ${secret}`),
    request('/v1/pets', bearer, bearer),
    request('/v1/pets', `X-Api-Key: ${secret}`),
    request('/v1/pets', bearer, `Sec-WebSocket-Protocol: tollgate, tollgate.bearer.${secret}`),
    request('/v1/pets', `Cookie: key=${secret}`),
    request('/v1/pets', `${secret}: 1`),
    request('/v1/pets', `Bad Name ${secret}: 1`),
    request('/v1/pets', `Host: ${secret}`),
    request('/v1/pets', bearer, `Expect: ${secret}`),
    request('/v1/pets', bearer, `Transfer-Encoding: ${secret}`),
    request('/v1/pets', bearer, `Content-Length: ${secret}`),
    request(
      '/v1/pets',
      bearer,
      `X-Request-Id: ${secret}`,
      `X-Key-Id: ${secret}`,
      `X-Forwarded-For: ${secret}`,
    ),
    request(`http://${secret}@api.test/v1/pets`, bearer),
    `${secret} /v1/pets HTTP/1.1\r\nHost: api.test\r\n\r\n`,
    `GET /v1/pets HTTP/${secret}\r\nHost: api.test\r\n\r\n`,
    `Bearer ${secret}\r\n\r\n`,
    [
      'POST /v1/pets HTTP/1.1',
      'Host: api.test',
      bearer,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  ];
}

async function responsesTo(port: number, bytes: string): Promise<string> {
  const responses = await exchangeRaw(port, bytes);
  return responses
    .map(({ status, headers, body }) => `HTTP ${status} ${JSON.stringify([...headers])} ${body}`)
    .join('\n');
}

/** Asserts that there are no eight consecutive bytes of a secret, neither plain nor percent-encoded nor in base64. */
function expectNoSecretIn(place: string, text: string): void {
  const forms = secrets.flatMap((secret) => [
    secret,
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('hex'),
  ]);
  const isThere = forms.some((form) => piecesOf(form, 8).some((piece) => text.includes(piece)));
  expect(isThere, `${place} holds a piece of a secret`).toBe(false);
}

function piecesOf(text: string, length: number): string[] {
  return Array.from({ length: Math.max(0, text.length - length + 1) }, (_, start) =>
    text.slice(start, start + length),
  );
}

/** No twelve consecutive digits of a secret's digest may occur; eight digits may occur in a figure by chance. */
function expectNoDigestIn(place: string, text: string): void {
  const digests = secrets.map((secret) => createHash('sha256').update(secret).digest('hex'));
  const isThere = digests.some((digest) => piecesOf(digest, 12).some((piece) => text.includes(piece)));
  expect(isThere, `${place} holds a piece of a digest`).toBe(false);
}
