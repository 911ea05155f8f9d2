import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { originOf } from '../support/fleet.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, quantile, startLoad } from '../support/load.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The part of a request or response that a greedy client does not send or read. */
export const greeds = ['sends no body', 'sends part of its body', 'reads no response'] as const;
export type Greed = (typeof greeds)[number];

export interface GreedyKeysOptions {
  readonly greed: Greed;
  readonly keys: number;
  /** The number of clients of all greedy keys together, for each of two processes. */
  readonly clients: number;
  /** The number of requests of other keys in each of two phases: before the greedy clients start, and while the greedy clients run. */
  readonly goodRequests: number;
  /** Bounds that replace the default bounds of the gateways. */
  readonly bounds?: NonNullable<Tuning['bounds']>;
}

export interface GreedyKeys {
  /** The number of responses to other keys for each status, in both phases together. */
  readonly good: Record<number, number>;
  readonly failures: readonly string[];
  readonly p99Ms: { readonly baseline: number; readonly beside: number };
  /** The slowest response shows a stall even if the stall delays too few requests to change the p99. */
  readonly slowestMs: { readonly baseline: number; readonly beside: number };
  /** The largest number of simultaneous greedy requests at the backend, from both processes together. */
  readonly heldAtBackend: number;
  /** The number of access lines of greedy requests for each status and fault, for example `408 client`. */
  readonly greedyEnds: Record<string, number>;
}

/**
 * A greedy client pauses before it reconnects. Without the pause, the greedy clients would also flood the gateways with new connections.
 */
const reconnectAfterMs = 2_000;
const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
const largeResponse = Buffer.from(okResponse('x'.repeat(8 * 1024 * 1024)));

/** Measures well-behaved keys on two processes while clients of greedy keys hold every connection that they get. */
export async function measureGreedyKeys(options: GreedyKeysOptions): Promise<GreedyKeys> {
  const { greed, clients, goodRequests, bounds } = options;
  const greedy = Array.from({ length: options.keys }, () => makeCustomKey(1_000_000_000, 1_000_000_000));
  const good = Array.from({ length: 4 }, () => makeCustomKey(1_000_000_000, 1_000_000_000));
  let held = 0;
  let heldAtBackend = 0;
  const backend = await startRecordingBackend({
    reactTo: 'head',
    react: ({ target }, socket) => {
      backend.requests.length = 0;
      if (!target.includes('greedy')) {
        socket.write(okResponse('[]'));
        return;
      }
      held++;
      heldAtBackend = Math.max(heldAtBackend, held);
      let isHeld = true;
      const release = () => {
        if (isHeld) held--;
        isHeld = false;
      };
      socket.once('close', release);
      if (greed === 'reads no response') socket.write(largeResponse, release);
    },
  });
  const config = testConfig({
    upstream: { url: backend.url, health: '/healthz' },
    keys: [...greedy, ...good].map(({ entry }) => entry),
  });
  const start = { tuning: bounds === undefined ? {} : { bounds } };
  const gateways = await Promise.all([startGateway(config, start), startGateway(config, start)]);
  const goodLoad = () =>
    startLoad({
      origins: gateways.map(originOf),
      secrets: good.map(({ secret }) => secret),
      clients: 8,
      requestsMax: goodRequests,
      pauseMs: 1,
    }).done;

  const crowd = new Set<Socket>();
  let isGoingOn = true;
  function join(index: number): void {
    const { port } = gateways[index % gateways.length] ?? { port: 0 };
    const { secret } = greedy[index % greedy.length] ?? { secret: '' };
    const localAddress = addresses[index % addresses.length] ?? '';
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    crowd.add(socket);
    socket.on('error', () => {});
    if (greed === 'reads no response') socket.pause();
    else socket.resume();
    socket.once('connect', () => socket.write(greeting(greed, secret, index)));
    socket.once('close', () => {
      crowd.delete(socket);
      // The client reconnects, so that the number of greedy clients is constant.
      if (isGoingOn) setTimeout(() => isGoingOn && join(index), reconnectAfterMs);
    });
  }

  try {
    const baseline = await goodLoad();
    for (let i = 0; i < 2 * clients; i++) {
      join(i);
      if (i % 100 === 99) await sleep(20);
    }
    await until(
      'the greedy clients have sent their requests',
      () => crowd.size >= 2 * clients * 0.9 && heldOrNone(),
      60_000,
    );
    await sleep(1_000);
    const beside = await goodLoad();
    await until(
      'greedy requests have ended',
      () => endsOf(gateways.flatMap(({ lines }) => lines)).size > 0,
      150_000,
    );
    const ends = endsOf(gateways.flatMap(({ lines }) => lines));
    return {
      good: countStatuses([...baseline.responses, ...beside.responses]),
      failures: [...baseline.failures, ...beside.failures],
      p99Ms: { baseline: quantile(baseline.responses, 0.99), beside: quantile(beside.responses, 0.99) },
      slowestMs: { baseline: quantile(baseline.responses, 1), beside: quantile(beside.responses, 1) },
      heldAtBackend,
      greedyEnds: Object.fromEntries(ends),
    };
  } finally {
    isGoingOn = false;
    for (const socket of crowd) socket.destroy();
    await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
    await backend.close();
  }

  /** Whether greedy requests reach the backend. A request without its body never reaches the backend. */
  function heldOrNone(): boolean {
    return greed === 'sends no body' || heldAtBackend > 0;
  }

  function endsOf(lines: readonly Record<string, unknown>[]): Map<string, number> {
    const ids = new Set(greedy.map(({ entry }) => entry.id));
    const counts = new Map<string, number>();
    for (const { keyId, status, fault } of lines) {
      if (!ids.has(String(keyId))) continue;
      const end = `${status} ${fault ?? ''}`.trim();
      counts.set(end, (counts.get(end) ?? 0) + 1);
    }
    return counts;
  }
}

/** The bytes that a greedy client sends. */
function greeting(greed: Greed, secret: string, index: number): string {
  const fields = `Host: a\r\nAuthorization: Bearer ${secret}\r\n`;
  const post = `POST /v1/pets?greedy HTTP/1.1\r\n${fields}`;
  switch (greed) {
    case 'sends no body':
      return [
        `${post}Transfer-Encoding: chunked\r\n\r\n`,
        `${post}Content-Length: 65537\r\n\r\nx`,
        `${post}Expect: 100-continue\r\nContent-Length: 10\r\n\r\n`,
      ][index % 3] as string;
    case 'sends part of its body':
      return `${post}Content-Length: 100000\r\n\r\n${'x'.repeat(70_000)}`;
    case 'reads no response':
      return `GET /v1/pets?greedy HTTP/1.1\r\n${fields}\r\n`;
  }
}
