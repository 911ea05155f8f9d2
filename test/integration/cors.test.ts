import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import type { Gateway } from '../../gateway/server/gateway.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { openRawClient, type RawResponse } from '../support/raw-http.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';

const app = 'https://app.example.com';
const key = makeKey();
let backend: RecordingBackend;
let gateway: Gateway;
let lines: Record<string, unknown>[];

afterEach(async () => {
  await gateway.drain({ graceMs: 0 });
  await backend.close();
});

async function start(overrides: Record<string, unknown>) {
  lines = [];
  // The clock is stopped, so that all requests count in one minute.
  const nowMs = Date.now();
  backend = await startRecordingBackend({
    react: (_request, socket) =>
      socket.write(
        okResponse('[]', 200, [
          'Vary: Accept',
          'Access-Control-Allow-Origin: *',
          'Access-Control-Max-Age: 1',
        ]),
      ),
  });
  const settings = await settingsOf({
    upstream: { url: backend.url, health: '/healthz' },
    keys: [key.entry],
    addressBucket: { perMinute: 2 },
    ...overrides,
  });
  gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: (line) => void lines.push(JSON.parse(line)) },
    nowMs: () => nowMs,
  });
  const { port } = (await gateway.start()).listen;
  return async (method: string, path: string, ...fields: string[]): Promise<RawResponse> => {
    const client = await openRawClient(port);
    client.send([`${method} /v1${path} HTTP/1.1`, 'Host: a', ...fields, '', ''].join('\r\n'));
    try {
      return await client.response();
    } finally {
      client.destroy();
    }
  };
}

const bearer = `Authorization: Bearer ${key.secret}`;
const preflight = (origin: string) => [
  `Origin: ${origin}`,
  'Access-Control-Request-Method: POST',
  'Access-Control-Request-Headers: authorization,content-type,x-own',
];
const namesOf = ({ headers }: RawResponse) =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-') || name === 'vary');

it('without cors no Access-Control field is sent, and a preflight is a request without a key', async () => {
  const send = await start({});
  const responses = [
    await send('GET', '/pets', bearer, `Origin: ${app}`),
    await send('OPTIONS', '/pets', ...preflight(app)),
    await send('GET', '//', `Origin: ${app}`),
  ];
  expect(responses.map(({ status }) => status)).toEqual([200, 401, 400]);
  expect(responses.flatMap(namesOf)).toEqual(['vary']);
  expect(responses[0]?.headers.get('vary')).toBe('Accept');
});

it('a preflight from an allowed origin gets 204 on any path, without key or charge', async () => {
  const send = await start({ cors: { origins: [app] } });
  for (const path of ['/pets', '/pets/1', '/nowhere']) {
    const { status, headers, body } = await send('OPTIONS', path, ...preflight(app));
    expect([status, body]).toEqual([204, '']);
    expect(Object.fromEntries(headers)).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, QUERY',
      'access-control-allow-headers': 'authorization,content-type,x-own',
      'access-control-max-age': '7200',
      vary: 'Origin',
      'x-ratelimit-limit': '600',
      'ratelimit-policy': '"preflight";q=600;w=60',
    });
    expect(headers.has('content-length')).toBe(false);
  }
  expect(backend.requests).toEqual([]);
  // The preflights were not charged, so the address still has its two requests without a key, and the key still has its quota.
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await send('GET', '/pets')).status);
  expect(statuses).toEqual([401, 401, 429]);
  expect((await send('GET', '/pets', bearer)).headers.get('x-ratelimit-remaining')).toBe('59');
  expect(lines.map(({ status, window }) => [status, window]).slice(0, 3)).toEqual(
    Array.from({ length: 3 }, () => [204, 'preflight']),
  );
});

it('pages of an allowed origin may read every response of gateway and backend, and other origins get only Vary', async () => {
  const send = await start({
    cors: { origins: [app, 'http://localhost:5173'] },
    addressBucket: { perMinute: 100 },
  });
  const cases = [
    ['GET', '/pets', 200, bearer],
    ['GET', '/pets', 401],
    ['GET', '/nowhere', 404, bearer],
    ['PUT', '/pets', 405, bearer],
  ] as const;
  for (const [method, path, status, ...fields] of cases) {
    const allowed = await send(method, path, ...fields, `Origin: ${app}`);
    expect(allowed.status).toBe(status);
    expect(allowed.headers.get('access-control-allow-origin')).toBe(app);
    expect(allowed.headers.get('access-control-expose-headers')).toContain('X-RateLimit-Remaining');
    expect(allowed.headers.get('vary')).toBe(status === 200 ? 'Accept, Origin' : 'Origin');
    for (const others of [
      [],
      ['Origin: https://evil.example'],
      [`Origin: ${app}.evil.example`],
      ['Origin: null'],
    ]) {
      expect(namesOf(await send(method, path, ...fields, ...others))).toEqual(['vary']);
    }
  }
  const foreign = await send('OPTIONS', '/pets', ...preflight('https://evil.example'));
  expect([foreign.status, ...namesOf(foreign)]).toEqual([401, 'vary']);
  // OPTIONS without Access-Control-Request-Method is an ordinary request.
  expect((await send('OPTIONS', '/pets', `Origin: ${app}`)).status).toBe(401);
});

it('preflights from one address have their own limit', async () => {
  const send = await start({ cors: { origins: [app] } });
  const statuses = [];
  for (let i = 0; i < 601; i++) statuses.push((await send('OPTIONS', '/pets', ...preflight(app))).status);
  expect(statuses.filter((status) => status === 204)).toHaveLength(600);
  const last = await send('OPTIONS', '/pets', ...preflight(app));
  expect(last.status).toBe(429);
  expect(JSON.parse(last.body).message).toMatch(
    /^Too many CORS preflights from this address\. Retry in \d+ s\.$/,
  );
  expect(last.headers.get('access-control-allow-origin')).toBe(app);
  expect((await send('GET', '/pets', bearer, `Origin: ${app}`)).status).toBe(200);
});

it('invalid field names in a preflight are not repeated', async () => {
  const send = await start({ cors: { origins: [app] } });
  const { headers } = await send(
    'OPTIONS',
    '/pets',
    `Origin: ${app}`,
    'Access-Control-Request-Method: GET',
    'Access-Control-Request-Headers: a b, "c"',
  );
  expect(headers.get('access-control-allow-headers')).toBe('Authorization, Content-Type');
});
