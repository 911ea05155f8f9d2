import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { okResponse, reset } from '../../support/recording-backend.ts';
import { accept, startCollector } from './start-collector.ts';
import { apiKey, fieldOf, limitedKey, startTraced } from './start-traced.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';
const traceparent = `00-${traceId}-${parentId}-00`;

it('a sampled request has a server span and a client span, and the backend gets the client span as its parent', async () => {
  const { send, spans, backend, lines, gateway } = await startTraced();
  const before = Date.now();
  const response = await send('/pets?token=s3cret');
  const [server, client] = await spans(2);
  const requestId = response.headers.get('x-request-id');
  expect(server).toMatchObject({
    name: 'GET /v1/pets',
    kind: 'server',
    parentSpanId: undefined,
    status: undefined,
    flags: 0x101,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/v1/pets',
      'url.path': '/v1/pets',
      'url.scheme': 'http',
      'server.address': '127.0.0.1',
      'server.port': gateway.port,
      'client.address': '127.0.0.1',
      'network.protocol.version': '1.1',
      'http.response.status_code': 200,
      'tollgate.request_id': requestId,
      'tollgate.operation': 'listPets',
      'tollgate.key': 'acme',
      'tollgate.plan': 'pro',
      'tollgate.decision': 'admitted',
      'tollgate.window': 'minute',
      'tollgate.units': 1,
      'tollgate.attempts': 1,
    },
    resource: { 'service.name': 'tollgate', 'deployment.environment.name': 'test' },
  });
  expect(client).toMatchObject({
    name: 'GET',
    kind: 'client',
    traceId: server?.traceId,
    parentSpanId: server?.spanId,
    attributes: {
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'server.port': backend.port,
      'network.peer.address': '127.0.0.1',
      'network.peer.port': backend.port,
      'url.full': `${backend.url}/v1/pets`,
      'tollgate.upstream': 'default',
    },
  });
  expect(server?.startMs).toBeGreaterThan(before - 1_000);
  expect(server?.endMs).toBeGreaterThanOrEqual(client?.endMs ?? Number.POSITIVE_INFINITY);
  expect(client?.startMs).toBeGreaterThanOrEqual(server?.startMs ?? Number.POSITIVE_INFINITY);
  // The id of the request leads to the trace.
  expect(server?.traceId).toBe(requestId?.replaceAll('-', ''));
  const [received] = backend.requests;
  expect(received && fieldOf(received, 'traceparent')).toBe(`00-${server?.traceId}-${client?.spanId}-01`);
  expect(lines()).toMatchObject([{ traceId: server?.traceId, spanId: server?.spanId }]);
});

it('the trace of the client goes on, with its tracestate', async () => {
  const { send, spans, backend } = await startTraced();
  const tracestate = 'vendor=1,other=2';
  await send('/pets', { headers: { traceparent, tracestate } });
  const [server, client] = await spans(2);
  expect(server).toMatchObject({ traceId, parentSpanId: parentId, flags: 0x301 });
  expect(client).toMatchObject({ traceId, parentSpanId: server?.spanId, flags: 0x101 });
  const [received] = backend.requests;
  if (received === undefined) throw new Error('the backend got no request');
  expect(fieldOf(received, 'traceparent')).toBe(`00-${traceId}-${client?.spanId}-01`);
  expect(fieldOf(received, 'tracestate')).toBe(tracestate);
});

it.each([
  ['of another form', 'not-a-trace'],
  ['with an id of zeros', `00-${'0'.repeat(32)}-${parentId}-01`],
  ['with a parent of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['in upper case', `00-${traceId.toUpperCase()}-${parentId}-01`],
  ['of the version ff', `ff-${traceId}-${parentId}-01`],
  ['that is too long', `00-${traceId}-${parentId}-01-x`],
  ['that stands twice', `${traceparent}, ${traceparent}`],
  ['with quotes', `00-${traceId}-${parentId}-01"},{"`],
])('a traceparent %s starts a new trace, without its tracestate', async (_what, hostile) => {
  const { send, spans, backend, lines } = await startTraced();
  await send('/pets', { headers: { traceparent: hostile, tracestate: 'vendor=1' } });
  const [server, client] = await spans(2);
  expect(server?.parentSpanId).toBeUndefined();
  expect(server?.traceId).not.toBe(traceId);
  const [received] = backend.requests;
  if (received === undefined) throw new Error('the backend got no request');
  expect(fieldOf(received, 'traceparent')).toBe(`00-${server?.traceId}-${client?.spanId}-01`);
  expect(fieldOf(received, 'tracestate')).toBeUndefined();
  expect(lines()).toMatchObject([{ traceId: server?.traceId }]);
});

it('each attempt is a client span, and each target gets the span of its attempt', async () => {
  const { send, spans, backend } = await startTraced();
  backend.react = (request, socket) => {
    // The gateway repeats a request whose reused connection was lost.
    if (backend.requests.length === 2) reset(socket);
    else socket.write(okResponse(request.target));
  };
  await send();
  expect((await send()).status).toBe(200);
  const [server, first, second] = (await spans(5)).slice(2);
  expect(server?.attributes).toMatchObject({ 'tollgate.attempts': 2, 'http.response.status_code': 200 });
  expect(first).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'upstream_failed' } });
  expect(first?.attributes).not.toHaveProperty('http.response.status_code');
  expect(second?.attributes).toMatchObject({
    'http.request.resend_count': 1,
    'http.response.status_code': 200,
  });
  expect(backend.requests.slice(1).map((request) => fieldOf(request, 'traceparent'))).toEqual(
    [first, second].map((span) => `00-${server?.traceId}-${span?.spanId}-01`),
  );
});

it('without sampling, the fields of the client reach the backend unchanged, and nothing is recorded', async () => {
  const { send, backend, collector, lines, gateway } = await startTraced({ otel: { sample: '0 %' } });
  const headers = { traceparent: traceparent.replace(/00$/, '01'), tracestate: 'vendor=1' };
  await send('/pets', { headers });
  await send('/pets');
  expect(backend.requests.map((request) => fieldOf(request, 'traceparent'))).toEqual([
    headers.traceparent,
    undefined,
  ]);
  expect(backend.requests.map((request) => fieldOf(request, 'tracestate'))).toEqual(['vendor=1', undefined]);
  await gateway.stop('SIGINT');
  expect(collector.requests).toEqual([]);
  expect(lines().map((line) => [line.traceId, line.spanId])).toEqual([
    [traceId, undefined],
    [undefined, undefined],
  ]);
});

it('a flag of a trusted proxy counts, up to its bound a second, and a flag of another peer does not', async () => {
  const headers = { traceparent: `00-${traceId.slice(0, 16)}${'0'.repeat(15)}1-${parentId}-01` };
  const bounds = { otelFlaggedPerSecondMax: 2 };
  const trusted = await startTraced({
    otel: { sample: '0.1 %' },
    config: { trustedProxies: ['127.0.0.1'] },
    bounds,
  });
  const before = Math.floor(performance.now() / 1_000);
  for (let sent = 0; sent < 20; sent++) await trusted.send('/pets', { headers });
  const seconds = Math.floor(performance.now() / 1_000) - before + 1;
  const found = (await trusted.spans(4)).filter(({ kind }) => kind === 'server');
  expect(found.length).toBeGreaterThanOrEqual(2);
  expect(found.length).toBeLessThanOrEqual(2 * seconds);

  const other = await startTraced({ otel: { sample: '0.1 %' }, bounds });
  for (let sent = 0; sent < 20; sent++) await other.send('/pets', { headers });
  await other.gateway.stop('SIGINT');
  expect(other.collector.spans()).toEqual([]);
});

it('a refusal, a failure and a slow request are kept, although their backend got no parent', async () => {
  const { send, spans, backend, lines } = await startTraced({ otel: { sample: '0 %', slow: '200ms' } });
  await send('/pets', { secret: limitedKey.secret });
  expect((await send('/pets', { secret: limitedKey.secret })).status).toBe(429);
  backend.react = (_request, socket) => socket.write(okResponse('', 500));
  await send('/pets');
  backend.react = (_request, socket) => setTimeout(() => socket.write(okResponse('')), 250);
  await send('/pets');
  const all = await spans(5);
  expect(all.map(({ kind, attributes }) => [kind, attributes['tollgate.kept']])).toEqual([
    ['server', 'refused'],
    ['server', 'failed'],
    ['client', undefined],
    ['server', 'slow'],
    ['client', undefined],
  ]);
  const [refused, failed, ofFailed] = all;
  expect(refused).toMatchObject({
    status: undefined,
    attributes: {
      'http.response.status_code': 429,
      'tollgate.decision': 'refused',
      'tollgate.window': 'minute',
      'tollgate.error': 'rate_limited',
      'tollgate.key': 'limited',
    },
  });
  expect(refused?.attributes).not.toHaveProperty('error.type');
  expect(failed).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': '500' } });
  expect(ofFailed).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': '500' } });
  expect(backend.requests.map((request) => fieldOf(request, 'traceparent'))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(lines().map(({ status, spanId }) => [status, spanId])).toEqual([
    [200, undefined],
    [429, refused?.spanId],
    [500, failed?.spanId],
    [200, all[3]?.spanId],
  ]);
});

it('one key takes only its share of the kept refusals of a second', async () => {
  const { send, gateway, collector } = await startTraced({
    otel: { sample: '0 %' },
    config: { bans: { after: 1_000, within: '60s', for: '60s', max: '1h' } },
    bounds: { otelKeptPerHolderMax: 1 },
  });
  const before = Math.floor(performance.now() / 1_000);
  for (let sent = 0; sent < 50; sent++) await send('/pets', { secret: limitedKey.secret });
  const seconds = Math.floor(performance.now() / 1_000) - before + 1;
  await gateway.stop('SIGINT');
  expect(collector.spans().length).toBeGreaterThan(0);
  expect(collector.spans().length).toBeLessThanOrEqual(seconds);
});

it('spans have no secret, query or body, and no long segment of the path', async () => {
  const { send, spans, collector } = await startTraced();
  const hidden = 'tg_Q9xW7vK3mR5tL2pZ8nB4';
  await send(`/pets/${hidden}?api_key=${hidden}`, {
    headers: { 'x-api-key': hidden, cookie: `a=${hidden}` },
  });
  await send('/pets', { secret: hidden });
  await send('/pets', { headers: { 'user-agent': hidden, referer: `http://a/${hidden}` } });
  const all = await spans(4);
  const whole = collector.requests.map(({ body }) => body.toString()).join('\n');
  expect(whole).not.toContain(hidden);
  expect(whole).not.toContain(apiKey.secret);
  expect(all[0]?.attributes).toMatchObject({ 'url.path': '/v1/pets/…', 'http.route': '/v1/pets/{petId}' });
});

it('a request without a key, one that matches no operation, and one that the parser refuses have spans', async () => {
  const { send, spans, gateway } = await startTraced();
  await send('/pets', { secret: 'unknown' });
  await send('/nothing');
  const socket = connect(gateway.port, '127.0.0.1');
  socket.end('GET /v1/pets HTTP/1.1\r\nno field\r\n\r\n');
  socket.resume();
  const [unauthorized, unknown, malformed] = await spans(3);
  expect(unauthorized).toMatchObject({
    name: 'GET /v1/pets',
    attributes: { 'http.response.status_code': 401, 'tollgate.error': 'invalid_key' },
  });
  expect(unauthorized?.attributes).not.toHaveProperty('tollgate.key');
  expect(unknown).toMatchObject({ name: 'GET', attributes: { 'http.response.status_code': 404 } });
  expect(unknown?.attributes).not.toHaveProperty('http.route');
  expect(malformed).toMatchObject({
    name: 'HTTP',
    attributes: { 'http.request.method': '_OTHER', 'http.response.status_code': 400 },
  });
});

it('a method that OpenTelemetry does not know is _OTHER', async () => {
  const { send, spans } = await startTraced();
  await send('/pets', { method: 'PROPFIND' });
  const [server] = await spans(1);
  expect(server).toMatchObject({
    name: 'HTTP',
    attributes: { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' },
  });
});

it('a gateway without a collector sends nothing and changes no field', async () => {
  const { send, edit, collector, backend, lines } = await startTraced();
  collector.respond(accept);
  await edit(undefined);
  await send('/pets', { headers: { traceparent } });
  expect(backend.requests.map((request) => fieldOf(request, 'traceparent'))).toEqual([traceparent]);
  expect(lines()).toMatchObject([{ traceId }]);
  expect(lines()[0]).not.toHaveProperty('spanId');
  expect(collector.requests).toEqual([]);
});

it('an edit of the URL takes effect without a restart', async () => {
  const { send, edit, collector, spans } = await startTraced();
  await send();
  await spans(2);
  const other = await startCollector();
  await edit({ url: other.url, sample: '100 %' });
  await send();
  await expect.poll(() => other.spans().length).toBe(2);
  expect(collector.spans()).toHaveLength(2);
  await other.close();
});

it('the target of a WebSocket gets the span of the handshake', async () => {
  const document = `openapi: 3.1.0
info: { title: Sockets, version: 1.0.0 }
paths:
  /socket:
    get: { operationId: socket, x-upgrade: websocket }
`;
  const { spans, backend, gateway } = await startTraced({
    config: { api: 'api.yaml' },
    files: { 'api.yaml': document },
  });
  backend.react = (_request, socket) => socket.write(okResponse('', 403));
  const client = connect(gateway.port, '127.0.0.1');
  const fields = [
    'Host: a',
    `Authorization: Bearer ${apiKey.secret}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    `traceparent: ${traceparent}`,
  ];
  client.write(`GET /v1/socket HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
  client.resume();
  const [server, attempt] = await spans(2);
  expect(server).toMatchObject({ traceId, parentSpanId: parentId, name: 'GET /v1/socket' });
  expect(attempt).toMatchObject({ status: { code: 2 }, attributes: { 'http.response.status_code': 403 } });
  const [received] = backend.requests;
  expect(received && fieldOf(received, 'traceparent')).toBe(`00-${traceId}-${attempt?.spanId}-01`);
  client.destroy();
});
