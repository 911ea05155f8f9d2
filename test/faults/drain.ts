import { setTimeout as sleep } from 'node:timers/promises';
import { type Balancer, startBalancer } from '../support/balancer.ts';
import { originOf } from '../support/fleet.ts';
import { type GatewayProcess, makeCustomKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { countStatuses, startLoad } from '../support/load.ts';
import { openRawClient } from '../support/raw-http.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { startRedis } from '../support/start-redis.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const key = makeCustomKey(1_000_000_000, 1_000_000_000);
const clients = 40;

/** The backend responds after 20 ms, so that there are always requests in flight. */
function startSlowBackend(): Promise<RecordingBackend> {
  return startRecordingBackend({
    react: (_request, socket) => void sleep(20).then(() => socket.write(okResponse('[]'))),
  });
}

function configFor(backend: RecordingBackend): Record<string, unknown> {
  return testConfig({ upstream: { url: backend.url, health: '/healthz' }, keys: [key.entry] });
}

export interface Drain {
  readonly responses: number;
  readonly statuses: Record<number, number>;
  /** The errors of requests without a complete response. */
  readonly failures: readonly string[];
  /** The number of responses with `Connection: close`. */
  readonly toldToClose: number;
  readonly idleSocketClosed: boolean;
  readonly exitCode: number | null;
  readonly endedAfterMs: number;
}

/**
 * Sends SIGTERM while clients on persistent connections send requests. Each client stops after a response with `Connection: close`.
 */
export async function measureDrain({
  requests,
  workers = 1,
  bounds,
}: {
  readonly requests: number;
  readonly workers?: number;
  /** Bounds that replace the default bounds of the gateway. */
  readonly bounds?: NonNullable<Tuning['bounds']>;
}): Promise<Drain> {
  const backend = await startSlowBackend();
  // Several workers need Redis.
  const redis = workers === 1 ? undefined : await startRedis();
  const gateway = await startGateway(
    {
      ...configFor(backend),
      ...(redis && { workers, redis: { url: redis.url, prefix: 'test' } }),
    },
    bounds && { tuning: { bounds } },
  );
  const origins = [originOf(gateway)];
  const idle = await openRawClient(gateway.port);
  let idleSocketClosed = false;
  void idle.closed.then(() => {
    idleSocketClosed = true;
  });
  idle.send(`GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key.secret}\r\n\r\n`);
  await idle.response();
  const load = startLoad({ origins, secrets: [key.secret], clients, leavesOnClose: true });
  try {
    await until('most requests are answered', () => load.responses.length >= 0.9 * requests, 120_000);
    const startedMs = performance.now();
    const exitCode = await gateway.stop('SIGTERM');
    const endedAfterMs = performance.now() - startedMs;
    const { responses, failures } = await load.stop();
    await until('the idle socket is closed', () => idleSocketClosed);
    return {
      responses: responses.length,
      statuses: countStatuses(responses),
      failures,
      toldToClose: responses.filter(({ headers }) => headers.connection === 'close').length,
      idleSocketClosed,
      exitCode,
      endedAfterMs,
    };
  } finally {
    idle.destroy();
    await gateway.stop('SIGKILL');
    await load.stop();
    await backend.close();
    await redis?.stop();
  }
}

export interface RollingRestart {
  readonly responses: number;
  readonly statuses: Record<number, number>;
  readonly failures: readonly string[];
  readonly exitCodes: readonly (number | null)[];
}

/** Replaces three processes one after the other under load, behind a load balancer that follows `/readyz`. */
export async function measureRollingRestart({
  bounds,
}: {
  /** Bounds that replace the default bounds of the gateway. */
  readonly bounds?: NonNullable<Tuning['bounds']>;
} = {}): Promise<RollingRestart> {
  const start = bounds && { tuning: { bounds } };
  const backend = await startSlowBackend();
  const config = configFor(backend);
  const balancer = await startBalancer();
  let running: GatewayProcess[] = await Promise.all([1, 2, 3].map(() => startGateway(config, start)));
  for (const gateway of running) balancer.add(gateway);
  const load = startLoad({ origins: [balancer.origin], secrets: [key.secret], clients });
  const exitCodes: (number | null)[] = [];
  try {
    for (const old of running) {
      const fresh = await startGateway(config, start);
      running = [...running.filter((gateway) => gateway !== old), fresh];
      balancer.add(fresh);
      exitCodes.push(await replace(old, balancer));
    }
    const { responses, failures } = await load.stop();
    return { responses: responses.length, statuses: countStatuses(responses), failures, exitCodes };
  } finally {
    await load.stop();
    await balancer.close();
    await Promise.all(running.map((gateway) => gateway.stop('SIGKILL')));
    await backend.close();
  }
}

async function replace(old: GatewayProcess, balancer: Balancer): Promise<number | null> {
  const exitCode = await old.stop('SIGTERM');
  balancer.remove(old);
  return exitCode;
}
