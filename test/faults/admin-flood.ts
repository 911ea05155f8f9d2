import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { makeToken } from '../support/admin-client.ts';
import { originOf } from '../support/fleet.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, quantile, startLoad } from '../support/load.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { startRedis } from '../support/start-redis.ts';
import type { Flood, FloodResult } from './admin-flood-thread.ts';

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const asking = (path: string) => ({ bytes: get(path), reconnects: false });
const chunked = (token: string) =>
  `POST /api/v1/simulate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(60_000)}0\r\n\r\n`;

/** The kinds of load on the admin listener. Only the load `send bodies in chunks of one octet` needs a token. */
export const floods = {
  'request /metrics': () => asking('/metrics'),
  'request /readyz': () => asking('/readyz'),
  'request /assets/admin/pages/browser/main.js': () => asking('/assets/admin/pages/browser/main.js'),
  'request /api/v1/keys': () => asking('/api/v1/keys'),
  'open a connection for each burst of 4 requests': () => ({
    bytes: get('/healthz').repeat(3) + get('/healthz').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
    reconnects: true,
  }),
  'open a connection for each burst of 100 requests': () => ({
    bytes: get('/healthz').repeat(100),
    reconnects: true,
  }),
  'open a connection for each body in chunks of one octet': () => ({
    bytes: chunked('none'),
    reconnects: true,
  }),
  'send octets that are not HTTP': () => ({ bytes: 'x'.repeat(20), reconnects: true }),
  'send bodies in chunks of one octet': (token: string) => ({ bytes: chunked(token), reconnects: false }),
} as const satisfies Record<string, (token: string) => Pick<Flood, 'bytes' | 'reconnects'>>;

/**
 * An operator sends requests, each on a new connection. `slowestMs` is the duration of the slowest request, and `outcomes` counts the
 * results.
 */
interface OperatorFigures {
  readonly slowestMs: number;
  readonly outcomes: Record<string, number>;
}

export interface AdminFlood {
  /** The number of responses to the key for each status, before and during the flood together. */
  readonly good: Record<number, number>;
  readonly failures: readonly string[];
  /** The p50 of the key's requests. */
  readonly p50Ms: { readonly baseline: number; readonly beside: number };
  readonly flood: { readonly perSecond: number } & FloodResult;
  /** Figures of two operators: one at the address of the flood, and one at another address. */
  readonly operators: { readonly here: OperatorFigures; readonly elsewhere: OperatorFigures };
}

/** Measures requests of a key and of operators while clients of one address send many requests to the admin listener. */
export async function measureAdminFlood(options: {
  readonly flood: keyof typeof floods;
  readonly clients: number;
  readonly goodRequests: number;
  readonly workers?: number;
}): Promise<AdminFlood> {
  const { clients, goodRequests, workers } = options;
  const key = makeCustomKey(1_000_000_000, 1_000_000_000);
  const [flooder, operator] = [makeToken('read'), makeToken('read')];
  const backend = await startRecordingBackend({
    react: (_request, socket) => {
      backend.requests.length = 0;
      socket.write(okResponse('[]'));
    },
  });
  // Workers need Redis.
  const redis = workers === undefined ? undefined : await startRedis();
  const gateway = await startGateway(
    testConfig({
      upstream: { url: backend.url, health: '/healthz' },
      admin: { host: '127.0.0.1', port: 0, tokens: [flooder.entry, operator.entry] },
      keys: [key.entry],
      ...(redis && { workers, redis: { url: redis.url } }),
    }),
  );
  const port = Number(new URL(gateway.adminUrl).port);
  const goodLoad = () =>
    startLoad({
      origins: [originOf(gateway)],
      secrets: [key.secret],
      clients: 8,
      requestsMax: goodRequests,
      pauseMs: 4,
    }).done;
  try {
    await goodLoad();
    const baseline = await goodLoad();
    const beganMs = performance.now();
    const flood = startFlood({
      port,
      localAddress: floodAddress,
      clients,
      ...floods[options.flood](flooder.token),
    });
    await sleep(300);
    const here = startOperator({ port, localAddress: floodAddress, token: operator.token });
    const elsewhere = startOperator({ port, localAddress: '127.0.0.3', token: operator.token });
    const beside = await goodLoad();
    const operators = { here: await here.stop(), elsewhere: await elsewhere.stop() };
    const floodMs = performance.now() - beganMs;
    const { connections, statuses } = await flood.stop();
    const responses = Object.values(statuses).reduce((sum, count) => sum + count, 0);
    return {
      good: countStatuses([...baseline.responses, ...beside.responses]),
      failures: [...baseline.failures, ...beside.failures],
      p50Ms: { baseline: quantile(baseline.responses, 0.5), beside: quantile(beside.responses, 0.5) },
      flood: { perSecond: (1_000 * responses) / floodMs, connections, statuses },
      operators,
    };
  } finally {
    await gateway.stop('SIGKILL');
    await backend.close();
    await redis?.stop();
  }
}

const floodAddress = '127.0.0.2';

/** Sends requests one after the other, each on a new connection. */
function startOperator({ port, localAddress, token }: { port: number; localAddress: string; token: string }) {
  const outcomes: Record<string, number> = {};
  let slowestMs = 0;
  let isStopped = false;
  const done = (async () => {
    for (let round = 0; !isStopped; round++) {
      const path = ['/readyz', '/metrics', '/api/v1/state'][round % 3];
      const sentMs = performance.now();
      const outcome = await new Promise<string>((resolve) => {
        const headers = { authorization: `Bearer ${token}` };
        const sent = request({ host: '127.0.0.1', port, localAddress, path, headers, agent: false });
        sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        sent.on('response', (response) => {
          response.resume();
          response.once('close', () => resolve(String(response.statusCode)));
        });
        sent.end();
      });
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      slowestMs = Math.max(slowestMs, performance.now() - sentMs);
      await sleep(20);
    }
  })();
  return {
    async stop(): Promise<OperatorFigures> {
      isStopped = true;
      await done;
      return { slowestMs, outcomes };
    },
  };
}

/** The flood runs in its own thread, so that it does not delay the API clients in this thread. */
function startFlood(flood: Flood): { stop(): Promise<FloodResult> } {
  const thread = new Worker(new URL('admin-flood-thread.ts', import.meta.url), { workerData: flood });
  return {
    async stop() {
      const result = once(thread, 'message');
      thread.postMessage('stop');
      const [found] = await result;
      await thread.terminate();
      return found;
    },
  };
}
