import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Gateway } from '../../gateway/server/gateway.ts';
import type { Settings } from '../../gateway/shared/model.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { openRawClient } from '../support/raw-http.ts';
import { readMetrics } from '../support/read-metrics.ts';
import {
  okResponse,
  type RecordingBackend,
  reset,
  startRecordingBackend,
} from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { until } from '../support/until.ts';

const key = makeCustomKey(1_000_000, 1_000_000);
const bearer = `Authorization: Bearer ${key.secret}`;
const api = `openapi: 3.1.0
info: { title: Test, version: 1.0.0 }
paths:
  /pets:
    get: { operationId: listPets }
    post: { operationId: createPet }
  /feed:
    get: { operationId: feed, x-upgrade: websocket, responses: { 200: { description: It went well. } } }
`;

interface Running {
  readonly gateway: Gateway;
  readonly port: number;
  readonly adminUrl: string;
  accessLines: number;
}

let backend: RecordingBackend;
let patient: Running;
/** Starts a gateway with a short timeout for request heads. */
let hasty: Running;

beforeAll(async () => {
  backend = await startRecordingBackend({ reactTo: 'head' });
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-api-'));
  await writeFile(join(folder, 'openapi.yaml'), api);
  const settings = await settingsOf({
    upstream: { url: backend.url, health: '/healthz' },
    keys: [key.entry],
    api: join(folder, 'openapi.yaml'),
  });
  await rm(folder, { recursive: true });
  patient = await start(settings, {});
  hasty = await start(settings, { headersTimeoutMs: 300, connectionsCheckingIntervalMs: 50 });
});
afterAll(async () => {
  await Promise.all([patient, hasty].map(({ gateway }) => gateway.drain({ graceMs: 0 })));
  await backend.close();
});

async function start(settings: Settings, bounds: Partial<Bounds>): Promise<Running> {
  const gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: () => running.accessLines++ },
    bounds: tunedBounds({ metricsKeptMs: 0, ...bounds }),
  });
  const { listen, admin } = await gateway.start();
  const adminUrl = `http://127.0.0.1:${admin.port}`;
  const running = { gateway, port: listen.port, adminUrl, accessLines: 0 };
  return running;
}

const request = (line: string, ...fields: string[]) =>
  [`${line} HTTP/1.1`, 'Host: a', ...fields, '', ''].join('\r\n');
const handshake = (...fields: string[]) =>
  request(
    'GET /v1/feed',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGVzdA==',
    ...fields,
  );
const accepts = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

type React = (socket: Socket) => void;
const answersOk: React = (socket) => void socket.write(okResponse('[]'));
const answersNothing: React = () => {};

interface Event {
  readonly sends: string;
  /** Whether the client closes its sending side after its requests. */
  readonly closesSending?: true;
  /** The backend's reaction to the request. */
  readonly react?: React;
  /** Closes the connection after the client has received its responses. If `ends` is absent, the client closes the connection. */
  readonly ends?: React;
  readonly isToHasty?: true;
  /** The moment at which the client resets its connection. If `leaves` is absent, the client does not reset the connection. */
  readonly leaves?: 'when all is sent' | 'when the backend has it' | 'within the response';
  /** The status and decision of each counted request. */
  readonly counted: readonly string[];
  /** The error codes of the requests that count as rejected. */
  readonly rejected?: readonly string[];
}

const events: Record<string, Event> = {
  'a request': { sends: request('GET /v1/pets', bearer), counted: ['200 admitted'] },
  'no HTTP at all': {
    sends: 'garbage\r\n\r\n',
    counted: ['400 counted'],
    rejected: ['invalid_request'],
  },
  'no HTTP, from a client that is gone at once': {
    sends: 'garbage\r\n\r\n',
    leaves: 'when all is sent',
    counted: ['400 counted'],
    rejected: ['invalid_request'],
  },
  'an unknown method': {
    sends: request('FETCH /v1/pets', bearer),
    counted: ['501 counted'],
    rejected: ['method_not_implemented'],
  },
  'a request for a tunnel': {
    sends: request('CONNECT a:443', bearer),
    counted: ['501 counted'],
    rejected: ['method_not_implemented'],
  },
  'a header that is too large': {
    sends: request('GET /v1/pets', bearer, `X-A: ${'a'.repeat(40_000)}`),
    counted: ['431 counted'],
    rejected: ['headers_too_large'],
  },
  'a URI that is too long': {
    sends: request(`GET /v1/pets?${'a'.repeat(9_000)}`, bearer),
    counted: ['414 counted'],
    rejected: ['uri_too_long'],
  },
  'a header that does not arrive in time': {
    sends: 'GET /v1/pets HTTP/1.1\r\nHost: a\r\n',
    isToHasty: true,
    counted: ['408 counted'],
    rejected: ['request_timeout'],
  },
  'no key': { sends: request('GET /v1/pets'), counted: ['401 counted'], rejected: ['missing_key'] },
  'no key, and a body that is announced only': {
    sends: request('POST /v1/pets', 'Content-Length: 1000', 'Expect: 100-continue'),
    counted: ['401 counted'],
    rejected: ['missing_key'],
  },
  'a wrong key': {
    sends: request('GET /v1/pets', 'Authorization: Bearer nobody'),
    counted: ['401 counted'],
    rejected: ['invalid_key'],
  },
  'an unknown path': { sends: request('GET /v1/nothing', bearer), counted: ['404 admitted'] },
  'an upgrade that is ignored': {
    sends: request('GET /v1/pets', bearer, 'Connection: Upgrade', 'Upgrade: h2c'),
    counted: ['200 admitted'],
  },
  'a WebSocket': {
    sends: handshake(bearer),
    react: (socket) => void socket.write(accepts),
    ends: (socket) => void socket.end(),
    counted: ['101 admitted'],
  },
  'a WebSocket that is cut by the backend with its first octets': {
    sends: handshake(bearer),
    react: (socket) => void socket.write(accepts),
    ends: reset,
    counted: ['101 admitted'],
  },
  'a WebSocket without a key': {
    sends: handshake(),
    counted: ['401 counted'],
    rejected: ['missing_key'],
  },
  'a WebSocket that the backend refuses': {
    sends: handshake(bearer),
    react: (socket) => void socket.write(okResponse('no', 403)),
    counted: ['403 admitted'],
  },
  'a WebSocket whose client goes away before the 101': {
    sends: handshake(bearer),
    react: answersNothing,
    leaves: 'when the backend has it',
    counted: ['499 admitted'],
  },
  'a client that closes its sending side after its request': {
    sends: request('GET /v1/pets', bearer),
    closesSending: true,
    counted: ['200 admitted'],
  },
  'a client that goes away before the response': {
    sends: request('GET /v1/pets', bearer),
    react: answersNothing,
    leaves: 'when the backend has it',
    counted: ['499 admitted'],
  },
  'a client that goes away within the response': {
    sends: request('GET /v1/pets', bearer),
    react: (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc'),
    leaves: 'within the response',
    counted: ['499 admitted'],
  },
  'a client that goes away within its body': {
    sends: `${request('POST /v1/pets', bearer, 'Content-Length: 1000')}abc`,
    leaves: 'when all is sent',
    counted: ['499 admitted'],
  },
  'a body that is malformed': {
    sends: `${request('POST /v1/pets', bearer, 'Transfer-Encoding: chunked')}nothing\r\n`,
    counted: ['400 admitted'],
  },
  'a backend that gives no response': {
    sends: request('POST /v1/pets', bearer, 'Content-Length: 0'),
    react: reset,
    counted: ['502 admitted'],
  },
  'a backend that cuts its response': {
    sends: request('GET /v1/pets', bearer),
    react: (socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc'),
    counted: ['200 admitted'],
  },
  'two requests in one packet': {
    sends: request('GET /v1/pets', bearer) + request('GET /v1/pets', bearer, 'Connection: close'),
    counted: ['200 admitted', '200 admitted'],
  },
  'a request with garbage behind it': {
    sends: `${request('GET /v1/pets', bearer)}garbage\r\n\r\n`,
    counted: ['200 admitted', '400 counted'],
    rejected: ['invalid_request'],
  },
  'a refused request with another behind it, which is not read': {
    sends: request('GET /v1/a b', bearer) + request('GET /v1/pets', bearer),
    counted: ['400 counted'],
    rejected: ['invalid_request'],
  },
  'a connection without a request': { sends: '', leaves: 'when all is sent', counted: [] },
};

it.each(Object.entries(events))('the metrics count once: %s', async (_, event) => {
  const running = event.isToHasty ? hasty : patient;
  const before = await readFigures(running);
  await play(event, running);
  await until('it is over', async () => {
    const { inFlight, connections, requests } = await readFigures(running);
    const isCounted = sumOf(requests) >= sumOf(before.requests) + event.counted.length;
    return isCounted && inFlight === 0 && connections === 0;
  });
  const after = await readFigures(running);
  const once = (names: readonly string[]) => {
    const counts: Record<string, number> = {};
    for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  };
  expect(risen(before.requests, after.requests)).toEqual(once(event.counted));
  expect(risen(before.rejected, after.rejected)).toEqual(once(event.rejected ?? []));
  expect(after.durations - before.durations).toBe(event.counted.length);
  expect(after.accessLines - before.accessLines).toBe(event.counted.length);
});

async function play(event: Event, { port }: Running): Promise<void> {
  const { sends, closesSending, react = answersOk, leaves, ends, counted } = event;
  const received = backend.requests.length;
  let backendSide: Socket | undefined;
  backend.react = (_request, socket) => {
    backendSide = socket;
    react(socket);
  };
  const client = await openRawClient(port);
  client.send(sends);
  if (closesSending) client.socket.end();
  if (leaves === undefined) {
    // The gateway itself closes the connection after it has cut off a request.
    for (const counts of counted) {
      const response = await client.response().catch(() => undefined);
      if (closesSending) expect(`${response?.status} admitted`).toBe(counts);
    }
    if (ends === undefined) client.socket.end();
    else if (backendSide !== undefined) ends(backendSide);
    await client.closed;
    return;
  }
  if (leaves === 'when the backend has it') await backend.received(received + 1);
  if (leaves === 'within the response') {
    await new Promise((resolve) => client.socket.once('data', resolve));
  }
  client.socket.resetAndDestroy();
}

async function readFigures({ adminUrl, accessLines }: Running) {
  const { figures, sum } = await readMetrics(adminUrl);
  const requests = new Map<string, number>();
  const rejected = new Map<string, number>();
  for (const [series, value] of figures) {
    const [, status, decision] =
      /^tollgate_requests_total\{.*status="(\d+)",decision="(\w+)"/.exec(series) ?? [];
    if (status !== undefined) {
      const name = `${status} ${decision}`;
      requests.set(name, (requests.get(name) ?? 0) + value);
    }
    const [, code] = /^tollgate_rejected_total\{code="(\w+)"/.exec(series) ?? [];
    if (code !== undefined) rejected.set(code, value);
  }
  return {
    requests,
    rejected,
    durations: figures.get('tollgate_request_duration_seconds_count') ?? 0,
    inFlight: sum('tollgate_requests_in_flight'),
    connections: sum('tollgate_connections'),
    accessLines,
  };
}

function risen(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) {
  const rises = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const);
  return Object.fromEntries(rises.filter(([, rise]) => rise !== 0));
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}
