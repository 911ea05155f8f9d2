import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeCustomKey, makeKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import { expectGatewayResponse } from '../support/gateway-response.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { type StoreProcess, startStoreHere } from '../support/store-process.ts';
import { withinOneMinute } from '../support/within-one-minute.ts';

const free = makeKey();
const roomy = makeCustomKey(1_000_000, 10_000_000);
const disabled = makeKey({ disabled: true });

let store: StoreProcess;
let gateway: RunningGateway;

beforeAll(async () => {
  store = await startStoreHere();
  gateway = await startGatewayHere(
    testConfig({
      upstream: { url: store.url, health: '/healthz' },
      keys: [free.entry, roomy.entry, disabled.entry],
    }),
  );
});
afterAll(async () => {
  await gateway.stop();
  await store.stop();
});

function call(path: string, init: RequestInit & { secret?: string } = {}): Promise<Response> {
  const { secret = roomy.secret, headers, ...rest } = init;
  return fetch(gateway.baseUrl + path, {
    ...rest,
    headers: { Authorization: `Bearer ${secret}`, ...headers },
  });
}

function post(body: string, headers: Record<string, string> = { 'Content-Type': 'application/json' }) {
  return call('/pets', { method: 'POST', body, headers });
}

/** The remaining requests of the day window, according to a response. */
function leftOfDay({ headers }: Response): number {
  const [, remaining] = /"day";r=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? [];
  return Number(remaining);
}

describe('authentication', () => {
  it('a request without a key gets 401 on every path, known or not', async () => {
    for (const path of ['/pets', '/pets/1', '/store/orders', '/nowhere']) {
      const response = await fetch(gateway.baseUrl + path);
      expect(await expectGatewayResponse(response, 401)).toMatchObject({ code: 'missing_key' });
      expect(response.headers.get('www-authenticate')).not.toContain('error');
      expect(response.headers.get('ratelimit-policy')).toContain('"address"');
    }
  });

  it.each([
    ['/pets', { 'X-API-Key': roomy.secret }, '"X-API-Key: <API_KEY>"'],
    [`/pets?limit=1&API_KEY=${roomy.secret}`, {}, '"?api_key=<API_KEY>"'],
    ['/pets', { 'x-api-token': roomy.secret }, '"X-Api-Token: <API_KEY>"'],
    ['/pets', { 'Ocp-Apim-Subscription-Key': roomy.secret }, '"Ocp-Apim-Subscription-Key: <API_KEY>"'],
    ['/pets', { 'X-Goog-Api-Key': roomy.secret }, '"X-Goog-Api-Key: <API_KEY>"'],
    [`/pets?key=${roomy.secret}`, {}, '"?key=<API_KEY>"'],
    [`/pets?monkey=1&Subscription-Key=${roomy.secret}`, {}, '"?subscription-key=<API_KEY>"'],
    ['/pets', { Authorization: roomy.secret }, 'Authorization without "Bearer"'],
  ])('a key in another place gets 401, which names that place: %#', async (path, headers, place) => {
    const response = await fetch(gateway.baseUrl + path, { headers: { ...headers } });
    const { message } = (await expectGatewayResponse(response, 401)) as { message: string };
    expect(message).toBe(`An API key is required: send "Authorization: Bearer <API_KEY>", not ${place}.`);
  });

  it.each(['wrong', disabled.secret])('an invalid key gets 401 invalid_key', async (secret) => {
    const response = await call('/pets', { secret });
    expect(await expectGatewayResponse(response, 401)).toMatchObject({ code: 'invalid_key' });
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
  });
});

describe('operations', () => {
  it('an added animal is listed and fetched unchanged', async () => {
    const created = (await expectGatewayResponse(await post('{"name":"Rex","categoryId":7}'), 201)) as {
      id: number;
    };
    expect(created).toEqual({ id: expect.any(Number), name: 'Rex', categoryId: 7 });
    expect(await expectGatewayResponse(await call(`/pets/${created.id}`), 200)).toEqual(created);
    expect(await expectGatewayResponse(await call('/pets'), 200)).toContainEqual(created);
  });

  it('an int64 is exact to the last digit', async () => {
    const response = await post('{"name":"Max","categoryId":9223372036854775807,"status":"sold"}');
    expect(response.status).toBe(201);
    expect(await response.text()).toContain('"categoryId":9223372036854775807');
  });

  it('orders are an empty list', async () => {
    expect(await expectGatewayResponse(await call('/store/orders'), 200)).toEqual([]);
  });

  it.each(['?limit=0', '?limit=101', '?limit=abc', '?limit=5&limit=6', '?status=lost'])(
    'GET /pets%s gives a 400 that names the field',
    async (query) => {
      const body = (await expectGatewayResponse(await call(`/pets${query}`), 400)) as { message: string };
      expect(body.message).toMatch(/limit|status/);
    },
  );

  it.each([
    ['{"name":"Rex"}', 'categoryId'],
    ['{"categoryId":1}', 'name'],
    ['{"name":1,"categoryId":1}', 'name'],
    ['{"name":"Rex","categoryId":1.5}', 'categoryId'],
    ['{"name":"Rex","categoryId":9223372036854775808}', 'categoryId'],
    ['{"name":"Rex","categoryId":1,"status":"lost"}', 'status'],
    ['{"name":', 'JSON'],
    ['', 'body'],
  ])('POST /pets with %s gives a 400 with the text %s', async (body, word) => {
    const error = (await expectGatewayResponse(await post(body), 400)) as { message: string };
    expect(error.message.toLowerCase()).toContain(word.toLowerCase());
  });

  it('another content type gives 415, and a body above the limit 413', async () => {
    await expectGatewayResponse(await post('name=Rex', { 'Content-Type': 'text/plain' }), 415);
    expect(await expectGatewayResponse(await post('x'.repeat(1_048_577)), 413)).toMatchObject({
      code: 'payload_too_large',
    });
  });

  it('HEAD is served wherever GET is', async () => {
    const response = await call('/pets', { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-ratelimit-limit')).toBeTruthy();
  });

  it('the gateway itself refuses an unknown path with 404 and another method with 405, and charges both', async () => {
    const refusals = [
      { path: '/nowhere', method: 'GET', status: 404, code: 'not_found', allow: null },
      { path: '/pets', method: 'DELETE', status: 405, code: 'method_not_allowed', allow: 'GET, POST, HEAD' },
      { path: '/pets', method: 'OPTIONS', status: 405, code: 'method_not_allowed', allow: 'GET, POST, HEAD' },
    ];
    // The test compares the remaining requests of one day, so it must not run across midnight.
    await withinOneMinute(10_000);
    let left = leftOfDay(await call('/pets', { secret: free.secret }));
    for (const { path, method, status, code, allow } of refusals) {
      const response = await call(path, { method, secret: free.secret });
      expect(await expectGatewayResponse(response, status)).toMatchObject({ code });
      expect(response.headers.get('allow')).toBe(allow);
      expect(leftOfDay(response)).toBe(left - 1);
      left -= 1;
      const id = response.headers.get('x-request-id');
      const line = await gateway.line(({ requestId }) => requestId === id);
      expect(line).toMatchObject({ status, error: code, keyId: free.entry.id });
      expect(line).not.toHaveProperty('target');
    }
  });
});

describe('deprecation', () => {
  it('is announced in every response of GET /pets/{petId}, including 401 and 404', async () => {
    const responses = [
      await call('/pets/1'),
      await call('/pets/999999'),
      await fetch(`${gateway.baseUrl}/pets/1`),
      await call('/pets/1', { method: 'HEAD' }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 401, 200]);
    for (const { headers } of responses) {
      expect(headers.get('deprecation')).toBe('@1795132800');
      expect(headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
      expect(headers.get('link')).toContain('</v1/pets>; rel="successor-version"');
    }
  });

  it('is not announced by other operations', async () => {
    const { headers } = await call('/pets');
    expect(headers.get('deprecation')).toBeNull();
    expect(headers.get('sunset')).toBeNull();
  });
});

describe('limits', () => {
  it('admit 60 requests a minute for a Free key, each with its own remaining, then give 429', async () => {
    const limited = makeKey();
    await gateway.editConfig(
      testConfig({
        upstream: { url: store.url, health: '/healthz' },
        keys: [free.entry, roomy.entry, disabled.entry, limited.entry],
        listen: { host: '127.0.0.1', port: 0 },
      }),
    );
    await gateway.line(({ msg }) => msg === 'the configuration was reloaded');
    await withinOneMinute(15_000);

    const responses = await Promise.all(
      Array.from({ length: 70 }, () => call('/pets', { secret: limited.secret })),
    );
    const admitted = responses.filter(({ status }) => status === 200);
    const remaining = admitted.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')));
    expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));

    const refused = responses.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(10);
    for (const response of refused) {
      expect(await expectGatewayResponse(response, 429)).toMatchObject({ code: 'rate_limited' });
      expect(response.headers.get('x-ratelimit-limit')).toBe('60');
      expect(response.headers.get('x-ratelimit-remaining')).toBe('0');
      expect(Number(response.headers.get('x-ratelimit-reset')) % 60).toBe(0);
    }
    const deprecated = await call('/pets/1', { secret: limited.secret });
    await expectGatewayResponse(deprecated, 429);
    expect(deprecated.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
  });
});

describe('a kept-alive connection', () => {
  it('announces its idle timeout in forwarded responses and in refusals, but not in its last response', async () => {
    const request = (authorization: string, connection: string) =>
      `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${authorization}Connection: ${connection}\r\n\r\n`;
    const valid = `Authorization: Bearer ${roomy.secret}\r\n`;
    const responses = await exchangeRaw(
      gateway.port,
      request(valid, 'keep-alive') + request('', 'keep-alive') + request(valid, 'close'),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 401, 200]);
    const announced = responses.map(({ headers }) => [headers.get('connection'), headers.get('keep-alive')]);
    expect(announced).toEqual([
      ['keep-alive', 'timeout=60'],
      ['keep-alive', 'timeout=60'],
      ['close', undefined],
    ]);
  });
});

describe('the access line', () => {
  it('has the key, the operation and the decision, and never a secret', async () => {
    const response = await call('/pets?limit=1&api_key=careless');
    await call(`/pets/${roomy.secret}`);
    const id = response.headers.get('x-request-id');
    const line = await gateway.line((entry) => entry.requestId === id);
    expect(line).toMatchObject({
      keyId: roomy.entry.id,
      plan: 'enterprise',
      operation: 'listPets',
      method: 'GET',
      path: '/v1/pets',
      status: 200,
      decision: 'admitted',
      window: 'minute',
      upstreamMs: expect.any(Number),
      attempts: 1,
    });
    const log = JSON.stringify(gateway.lines);
    for (const { secret } of [free, roomy, disabled]) expect(log).not.toContain(secret);
    expect(log).not.toContain('careless');
    expect(log).not.toContain('Bearer test-');
  });

  it('of a valid request with a faulty body is one line, with the key and the id of the response', async () => {
    const head = `POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${roomy.secret}\r\n`;
    const [response] = await exchangeRaw(gateway.port, `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);
    expect(response?.status).toBe(400);
    const id = response?.headers.get('x-request-id');
    const line = await gateway.line((entry) => entry.requestId === id);
    expect(line).toMatchObject({
      status: 400,
      error: 'invalid_request',
      fault: 'client',
      keyId: roomy.entry.id,
    });
    expect(gateway.lines.filter(({ status }) => status === 499)).toEqual([]);
  });
});
