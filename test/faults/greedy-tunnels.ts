import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { originOf } from '../support/fleet.ts';
import { makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, type LoadResponse, quantile, startLoad } from '../support/load.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { webSocketApi } from '../support/web-socket.ts';
import type { GreedyTunnelsOrder, GreedyTunnelsStart } from './greedy-tunnels-worker.ts';

export interface GreedyTunnelsOptions {
  readonly tunnels: number;
  /** The number of octets in one write. Each side of a WebSocket writes as fast as the other side reads. */
  readonly octets: number;
  /** The number of keys that open the WebSockets. */
  readonly keys: number;
  /**
   * The number of rounds. In the first half of a round, the WebSockets bypass the gateway. In the second half, the WebSockets go through
   * the gateway.
   */
  readonly rounds: number;
  /** The duration of each half of a round. */
  readonly halfMs: number;
}

export interface GreedyTunnels {
  readonly good: Record<number, number>;
  readonly failures: readonly string[];
  /** `baseline` is measured while the WebSockets are connected to the backend directly. */
  readonly p50Ms: { readonly baseline: number; readonly beside: number };
  readonly p99Ms: { readonly baseline: number; readonly beside: number };
  /** The octets that the gateway relays for the WebSockets, in both directions. */
  readonly mebibytesPerSecond: number;
}

/** Measures the requests of one key while WebSockets of other keys send as many octets as the gateway allows. */
export async function measureGreedyTunnels(options: GreedyTunnelsOptions): Promise<GreedyTunnels> {
  const greedy = Array.from({ length: options.keys }, () => makeCustomKey(1_000_000, 1_000_000));
  const good = makeCustomKey(1_000_000_000, 1_000_000_000);
  const order: GreedyTunnelsOrder = { tunnels: options.tunnels, octets: options.octets };
  const flood = new Worker(new URL('greedy-tunnels-worker.ts', import.meta.url), { workerData: order });
  const answer = async () => (await once(flood, 'message'))[0];
  const floodPort: number = await answer();
  const backend = await startRecordingBackend({
    react: (_request, socket) => {
      backend.requests.length = 0;
      socket.write(okResponse('[]'));
    },
  });
  const api = structuredClone(webSocketApi);
  Object.assign(api.paths['/feed'].get, { 'x-upstream': 'feed' });
  const gateway = await startGateway(
    testConfig({
      upstreams: {
        news: { url: backend.url, health: '/healthz' },
        feed: { url: `http://127.0.0.1:${floodPort}`, health: '/healthz' },
      },
      keys: [...greedy, good].map(({ entry }) => entry),
      api: './openapi.yaml',
    }),
    { files: { 'openapi.yaml': api } },
  );

  async function measureBeside(start: GreedyTunnelsStart) {
    flood.postMessage(start);
    await answer();
    const startedMs = performance.now();
    const load = startLoad({
      origins: [originOf(gateway)],
      secrets: [good.secret],
      clients: 4,
      path: '/v1/news',
    });
    await sleep(options.halfMs);
    const { responses, failures } = await load.stop();
    const seconds = (performance.now() - startedMs) / 1_000;
    flood.postMessage('stop');
    const moved: number = await answer();
    return { responses, failures, mebibytesPerSecond: moved / seconds / 1_048_576 };
  }

  const without: LoadResponse[] = [];
  const beside: LoadResponse[] = [];
  const failures: string[] = [];
  let mebibytesPerSecond = 0;
  try {
    for (let round = 0; round < options.rounds; round++) {
      const direct = await measureBeside({ port: floodPort, secrets: [] });
      const through = await measureBeside({
        port: gateway.port,
        secrets: greedy.map(({ secret }) => secret),
      });
      without.push(...direct.responses);
      beside.push(...through.responses);
      failures.push(...direct.failures, ...through.failures);
      mebibytesPerSecond += through.mebibytesPerSecond / options.rounds;
    }
    return {
      good: countStatuses([...without, ...beside]),
      failures,
      p50Ms: { baseline: quantile(without, 0.5), beside: quantile(beside, 0.5) },
      p99Ms: { baseline: quantile(without, 0.99), beside: quantile(beside, 0.99) },
      mebibytesPerSecond,
    };
  } finally {
    await flood.terminate();
    await gateway.stop('SIGKILL');
    await backend.close();
  }
}
