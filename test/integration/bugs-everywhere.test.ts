import { once } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Gateway } from '../../gateway/server/gateway.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { settingsOf } from '../support/settings-of.ts';
import { until } from '../support/until.ts';

/**
 * Row 30 of the list of faults: an error in any step of the request path ends only the exchange in which it is thrown. The exchange still
 * has an access line.
 */
const injected = vi.hoisted(() => {
  const state = { name: '', hits: 0 };
  return {
    state,
    /**
     * Returns the module with replacements for the functions in `names`. The replacement of the function `state.name` throws an error.
     * Every other replacement calls the original function.
     */
    throwing(module: object, names: readonly string[]): object {
      const replaced = names.map((name) => {
        const original = Reflect.get(module, name) as (...args: unknown[]) => unknown;
        const throwing = (...args: unknown[]) => {
          if (state.name !== name) return original(...args);
          state.hits++;
          throw new Error(`injected into ${name}`);
        };
        return [name, throwing] as const;
      });
      return { ...module, ...Object.fromEntries(replaced) };
    },
  };
});

vi.mock('../../gateway/request/listen/screen-request.ts', async (original) =>
  injected.throwing(await original(), ['screenRequest']),
);
vi.mock('../../gateway/request/respond/response-message.ts', async (original) =>
  injected.throwing(await original(), ['responseMessage', 'interimMessage']),
);
vi.mock('../../gateway/request/listen/parser-rejection.ts', async (original) =>
  injected.throwing(await original(), ['parserRejection']),
);
vi.mock('../../gateway/request/route/operation-table.ts', async (original) =>
  injected.throwing(await original(), ['routeRequest']),
);
vi.mock('../../gateway/request/authenticate/client-origin.ts', async (original) =>
  injected.throwing(await original(), ['clientOrigin']),
);
vi.mock('../../gateway/request/authenticate/authenticate-key.ts', async (original) => {
  const module =
    (await original()) as typeof import('../../gateway/request/authenticate/authenticate-key.ts');
  const createAuthenticateKey: typeof module.createAuthenticateKey = (...deps) => {
    const authenticateKey = module.createAuthenticateKey(...deps);
    return Reflect.get(injected.throwing({ authenticateKey }, ['authenticateKey']), 'authenticateKey');
  };
  return { ...module, createAuthenticateKey };
});
vi.mock('../../gateway/keys/directory/key-directory.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/keys/directory/key-directory.ts');
  const createKeyDirectory: typeof module.createKeyDirectory = (options) => {
    const directory = module.createKeyDirectory(options);
    return { ...directory, ...injected.throwing({ ...directory }, ['lookUp']) };
  };
  return { ...module, createKeyDirectory };
});
vi.mock('../../gateway/request/limit/limiter.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/request/limit/limiter.ts');
  const createLimiter: typeof module.createLimiter = (options) => {
    const limiter = module.createLimiter(options);
    return {
      ...limiter,
      ...injected.throwing({ ...limiter }, ['decide', 'chargeAddress', 'chargeDocs', 'readOwn']),
    };
  };
  return { ...module, createLimiter };
});
vi.mock('../../gateway/request/forward/forwarder.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/request/forward/forwarder.ts');
  const createForwarder: typeof module.createForwarder = (options) => {
    const forwarder = module.createForwarder(options);
    return { ...forwarder, ...injected.throwing({ ...forwarder }, ['forward', 'forwardUpgrade']) };
  };
  return { ...module, createForwarder };
});
vi.mock('../../gateway/request/forward/upstream/upstreams.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/request/forward/upstream/upstreams.ts');
  const createUpstreams: typeof module.createUpstreams = (...options) => {
    const upstreams = module.createUpstreams(...options);
    return { ...upstreams, ...injected.throwing({ ...upstreams }, ['find']) };
  };
  return { ...module, createUpstreams };
});
vi.mock('../../gateway/request/forward/request-head.ts', async (original) =>
  injected.throwing(await original(), ['requestHead']),
);
vi.mock('../../gateway/request/forward/response-fields.ts', async (original) =>
  injected.throwing(await original(), ['responseFields', 'interimFields']),
);
vi.mock('../../gateway/request/forward/upstream/retry-policy.ts', async (original) =>
  injected.throwing(await original(), ['mayRetry']),
);
vi.mock('../../gateway/request/pages/served-file.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/request/pages/served-file.ts');
  const createServedFile: typeof module.createServedFile = (options) => {
    const file = module.createServedFile(options);
    return { ...file, ...injected.throwing({ ...file }, ['respond']) };
  };
  return { ...module, createServedFile };
});
vi.mock('../../gateway/request/respond/common-fields.ts', async (original) =>
  injected.throwing(await original(), ['commonFields']),
);
vi.mock('../../gateway/request/respond/refusal-response.ts', async (original) =>
  injected.throwing(await original(), ['refusalResponse']),
);
vi.mock('../../gateway/request/respond/cors-fields.ts', async (original) =>
  injected.throwing(await original(), ['corsFields', 'isPreflight', 'preflightFields']),
);
vi.mock('../../gateway/usage/usage.ts', async (original) => {
  const module = (await original()) as typeof import('../../gateway/usage/usage.ts');
  const createUsage: typeof module.createUsage = (options) => {
    const usage = module.createUsage(options);
    const { recorder } = usage;
    const throwing = injected.throwing({ ...recorder }, ['decided', 'ended']);
    return { ...usage, recorder: { ...recorder, ...throwing } };
  };
  return { ...module, createUsage };
});
vi.mock('../../gateway/observe/access-line.ts', async (original) =>
  injected.throwing(await original(), ['accessLine']),
);

const key = makeKey({ plan: 'business' });
const authorization = `Authorization: Bearer ${key.secret}\r\n`;
const arrivals = {
  'an admitted request': `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`,
  'a request that fails at the backend': `GET /v1/pets?lost HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`,
  'a request with a body': `POST /v1/pets HTTP/1.1\r\nHost: a\r\n${authorization}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  'a request without a key': 'GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n',
  'a request whose secret nobody has': `GET /v1/pets HTTP/1.1\r\nHost: a\r\n${authorization.replace('Bearer ', 'Bearer un')}\r\n`,
  'a request that the screen refuses': `GET /v1//pets HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`,
  'a request that the parser refuses': 'GET /v1/p ets HTTP/1.1\r\nHost: a\r\n\r\n',
  'a body that the parser refuses': `POST /v1/pets HTTP/1.1\r\nHost: a\r\n${authorization}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`,
  'a preflight':
    'OPTIONS /v1/pets HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example.com\r\nAccess-Control-Request-Method: GET\r\nConnection: close\r\n\r\n',
  'a request for the API document': 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n',
  'a WebSocket': `GET /v1/feed HTTP/1.1\r\nHost: a\r\n${authorization}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
};
const stations = [
  // `lookUp` comes first, because later requests make the gateway cache the unknown secret for one second.
  'lookUp',
  'screenRequest',
  'responseMessage',
  'interimMessage',
  'parserRejection',
  'routeRequest',
  'clientOrigin',
  'authenticateKey',
  'decide',
  'chargeAddress',
  'chargeDocs',
  'respond',
  'forward',
  'forwardUpgrade',
  'find',
  'requestHead',
  'responseFields',
  'interimFields',
  'mayRetry',
  'commonFields',
  'refusalResponse',
  'corsFields',
  'isPreflight',
  'preflightFields',
  'accessLine',
  'decided',
  'ended',
];

let backend: RecordingBackend;
let gateway: Gateway;
let port: number;
let errors: Record<string, unknown>[];
let lines: Record<string, unknown>[];

beforeAll(async () => {
  backend = await startRecordingBackend({
    react: ({ target }, socket) =>
      target.endsWith('?lost')
        ? socket.destroy()
        : socket.write(
            `HTTP/1.1 103 X\r\nLink: a\r\n\r\n${okResponse('fine', target === '/v1/feed' ? 404 : 200)}`,
          ),
  });
  const settings = await settingsOf({
    upstream: { url: backend.url, health: '/healthz' },
    keys: [key.entry],
    addressBucket: { perMinute: 100_000 },
    cors: { origins: ['https://app.example.com'] },
    docsPath: '/docs',
    redis: { url: redisUrl(), prefix: freshPrefix() },
  });
  const [listPets] = settings.operations;
  const feed = {
    ...listPets,
    id: 'feed',
    method: 'GET',
    template: '/feed',
    upgrade: 'websocket',
    upstream: 'default',
  } as const;
  gateway = createGateway({
    settings: { ...settings, directory: true, operations: [...settings.operations, feed] },
    log: {
      logger: pino({ level: 'error' }, { write: (line) => void errors.push(JSON.parse(line)) }),
      access: (line) => void lines.push(JSON.parse(line)),
    },
  });
  port = (await gateway.start()).listen.port;
});

beforeEach(() => {
  injected.state.name = '';
  injected.state.hits = 0;
  errors = [];
  lines = [];
});

afterAll(async () => {
  injected.state.name = '';
  await gateway.drain({ graceMs: 0 });
  await backend.close();
});

/** Sends octets to the gateway. @returns the octets that arrive until the response is complete or the connection closes */
async function converse(bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let received = '';
  socket.on('data', (text: string) => {
    received += text;
    if (/\r\n\r\n(?:fine|\{.*\})$/s.test(received)) socket.end();
  });
  socket.on('error', () => {});
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return received;
}

describe.each(stations)('a bug in %s', (station) => {
  let hits = 0;
  afterAll(() => expect(hits, 'the function is called').toBeGreaterThan(0));

  it.each(Object.entries(arrivals))('while there is %s', async (_what, bytes) => {
    injected.state.name = station;
    const received = await converse(bytes);
    injected.state.name = '';
    hits += injected.state.hits;
    // The client receives one complete response, or the connection closes before the end of the response.
    const heads = received.match(/HTTP\/1\.1 [2-5]\d\d/g) ?? [];
    expect(heads.length, received).toBeLessThanOrEqual(1);
    const isNamed = (entry: Record<string, unknown>) =>
      JSON.stringify(entry).includes(`injected into ${station}`);
    if (injected.state.hits > 0) {
      await until('the bug is logged', () => errors.some(isNamed));
      if (/HTTP\/1\.1 [45].*\{.*\}$/s.test(received)) {
        expect(JSON.parse(received.slice(received.lastIndexOf('\r\n\r\n')))).toMatchObject({
          status: Number(heads[0]?.slice(9)),
        });
      }
    }
    const isItsOwnLine = station === 'accessLine';
    if (!isItsOwnLine || injected.state.hits === 0) await until('its line', () => lines.length === 1);
    expect(lines.length).toBeLessThanOrEqual(1);
    expect(await converse(arrivals['an admitted request'])).toMatch(/HTTP\/1\.1 200 OK[\s\S]*fine$/);
  });
});
