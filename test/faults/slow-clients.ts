import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { originOf } from '../support/fleet.ts';
import { type GatewayProcess, makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, quantile, startLoad } from '../support/load.ts';
import { descriptorsMax, openDescriptors } from '../support/process-figures.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

export interface SlowClientsOptions {
  readonly idle: number;
  /** The number of clients of each kind: slow header, slow body, slow reader. */
  readonly slow: number;
  readonly goodRequests: number;
  /** Bounds that replace the default bounds of the gateway. */
  readonly bounds?: NonNullable<Tuning['bounds']>;
}

export interface SlowClients {
  /** The largest number of sockets that were open at the same time. */
  readonly held: number;
  readonly good: Record<number, number>;
  readonly failures: readonly string[];
  readonly p99Ms: { readonly baseline: number; readonly besideSlow: number };
  readonly descriptors: { readonly before: number; readonly during: number; readonly after: number };
}

/** Several client addresses, because one address may open only `bounds.connectionsPerAddressMax` connections. */
const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
const dripIntervalMs = 250;
const longResponse = okResponse('x'.repeat(16 * 1024 * 1024));

/** Measures well-behaved clients while thousands of connections are idle, and other clients send or read a few bytes at a time. */
export async function measureSlowClients(options: SlowClientsOptions): Promise<SlowClients> {
  const { slow, goodRequests, bounds } = options;
  const idle = Math.min(options.idle, descriptorsMax() - 1_000);
  const key = makeCustomKey(1_000_000_000, 1_000_000_000);
  const backend = await startRecordingBackend({
    react: ({ target }, socket) =>
      void socket.write(target.includes('limit=100') ? longResponse : okResponse('[]')),
  });
  const gateway = await startGateway(
    testConfig({ upstream: { url: backend.url, health: '/healthz' }, keys: [key.entry] }),
    { tuning: bounds === undefined ? {} : { bounds } },
  );
  const goodLoad = () =>
    startLoad({ origins: [originOf(gateway)], secrets: [key.secret], clients: 4, requestsMax: goodRequests })
      .done;
  const crowd: Socket[] = [];
  const bearer = `Host: a\r\nAuthorization: Bearer ${key.secret}\r\n`;
  try {
    const baseline = await goodLoad();
    const before = descriptorsOf(gateway);
    const join = async (count: number, greeting: string) => {
      crowd.push(...(await openSockets(gateway.port, count, greeting, crowd.length)));
    };
    await join(idle, '');
    const droppers = crowd.length;
    await join(slow, 'GET /v1/pets HTTP/1.1\r\nX-Slow: ');
    await join(slow, `POST /v1/pets HTTP/1.1\r\n${bearer}Content-Length: 100000\r\n\r\n`);
    const drip = setInterval(() => {
      for (const socket of crowd.slice(droppers, droppers + 2 * slow)) if (socket.writable) socket.write('x');
    }, dripIntervalMs);
    await join(slow, `GET /v1/pets?limit=100 HTTP/1.1\r\n${bearer}\r\n`);
    const during = descriptorsOf(gateway);
    const beside = await goodLoad();
    await until('the sockets are freed', () => descriptorsOf(gateway) <= before + 10, 150_000);
    clearInterval(drip);
    return {
      held: crowd.length,
      good: countStatuses([...baseline.responses, ...beside.responses]),
      failures: [...baseline.failures, ...beside.failures],
      p99Ms: { baseline: quantile(baseline.responses, 0.99), besideSlow: quantile(beside.responses, 0.99) },
      descriptors: { before, during, after: descriptorsOf(gateway) },
    };
  } finally {
    for (const socket of crowd) socket.destroy();
    await gateway.stop('SIGKILL');
    await backend.close();
  }
}

async function openSockets(port: number, count: number, greeting: string, from: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, (_, index) => {
    const localAddress = addresses[(from + index) % addresses.length];
    const socket = connect({ port, host: '127.0.0.1', ...(localAddress && { localAddress }) });
    socket.pause();
    socket.on('error', () => {});
    return socket;
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  if (greeting !== '') for (const socket of sockets) socket.write(greeting);
  return sockets;
}

function descriptorsOf({ child }: GatewayProcess): number {
  return openDescriptors(child.pid ?? 0);
}
