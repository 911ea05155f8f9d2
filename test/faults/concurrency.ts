import { setTimeout as sleep } from 'node:timers/promises';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { originOf } from '../support/fleet.ts';
import { type GatewayProcess, makeKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { startHoldingBackend } from '../support/holding-backend.ts';
import { inspect } from '../support/inspect.ts';
import { startRedis } from '../support/start-redis.ts';
import { patientForwarding, patientGateway, type Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

export interface ConcurrencyFound {
  /** The requests that each killed process had in progress. */
  readonly openAtKill: readonly number[];
  /** The time from each kill until the backend had as many requests of the key as the limit allows. */
  readonly usableAfterMs: readonly number[];
  readonly refused: number;
  /** The largest measured numbers of concurrent requests of the key at the backend. */
  readonly most: {
    /** The largest measured number of concurrent requests of the key while processes are killed. */
    readonly before: number;
    /** The largest measured number of concurrent requests of one process while Redis is away. */
    readonly ofOneWhileAway: number;
    /** Requests that were admitted after Redis had returned, while the processes still served more requests than the limit allows. */
    readonly admittedAfter: number;
    /** The largest measured number of concurrent requests of the key after the requests from the outage had ended. */
    readonly after: number;
  };
}

const limit = 10;
const processes = [0, 1, 2] as const;
/** This number is above the limit, because each process without Redis admits as many requests as the limit allows. */
const clientsPerProcess = 12;
const prefix = 'test';

/**
 * Kills processes while they serve requests of a key with a concurrency limit, and then kills Redis. The backend holds each request until
 * the scenario ends it, so no step depends on the speed of the machine.
 *
 * @param leases by default, the leases of a gateway
 */
export async function measureConcurrency({
  kills,
  leases = {},
}: {
  readonly kills: number;
  readonly leases?: NonNullable<Tuning['bounds']>;
}): Promise<ConcurrencyFound> {
  const [backend, redis] = await Promise.all([startHoldingBackend(), startRedis()]);
  const inspector = inspect(redis.url);
  const key = makeKey({ plan: 'shared' });
  const config = testConfig({
    upstream: { url: backend.url, health: '/healthz' },
    plans: { shared: { perMinute: 1_000_000, perDay: 100_000_000, concurrent: limit } },
    keys: [key.entry],
    redis: { url: redis.url, prefix },
  });
  const bounds = { ...patientGateway, ...patientForwarding, ...leases };
  const start = () => startGateway(config, { tuning: { bounds } });
  const gateways: GatewayProcess[] = await Promise.all(processes.map(start));
  const refused = [0, 0, 0];
  const { counts, of } = backend;
  const ofProcess = (at: number) => of(`process=${at}`);
  let stopped = false;

  async function runClient(at: number): Promise<void> {
    while (!stopped) {
      const gateway = gateways[at];
      const status = gateway && (await statusOf(`${originOf(gateway)}/v1/pets?process=${at}`));
      if (status === 200) continue;
      if (status === 429) refused[at] = (refused[at] ?? 0) + 1;
      await sleep(50);
    }
  }

  async function statusOf(url: string): Promise<number | undefined> {
    try {
      const response = await fetch(url, { headers: { authorization: `Bearer ${key.secret}` } });
      await response.arrayBuffer();
      return response.status;
    } catch {
      // The process was killed.
      return undefined;
    }
  }

  async function killOne(): Promise<{ open: number; usableAfterMs: number }> {
    await until('the backend has as many requests as allowed', () => counts.now >= limit);
    const victim = [...processes].sort((a, b) => ofProcess(b).now - ofProcess(a).now)[0] ?? 0;
    const open = ofProcess(victim).now;
    const killedMs = performance.now();
    await gateways[victim]?.stop('SIGKILL');
    await until('the requests of the killed process have ended', () => ofProcess(victim).now === 0);
    await until('all places are used again', () => counts.now >= limit);
    const usableAfterMs = performance.now() - killedMs;
    gateways[victim] = await start();
    await turnOver();
    return { open, usableAfterMs };
  }

  /** Ends each request in progress, in a random order, while clients send further requests. */
  async function turnOver(): Promise<void> {
    for (let ended = 0; ended < 10 * limit; ended += 1) {
      await until('a request arrives', () => backend.open().length > 0);
      const open = backend.open();
      open[Math.floor(Math.random() * open.length)]?.end('[]');
    }
  }

  async function refuseEverywhere(): Promise<void> {
    const before = [...refused];
    await until('every process has refused further requests', () =>
      processes.every((at) => (refused[at] ?? 0) >= (before[at] ?? 0) + clientsPerProcess),
    );
  }

  const clients = processes.flatMap((at) => Array.from({ length: clientsPerProcess }, () => runClient(at)));
  try {
    const killed: { open: number; usableAfterMs: number }[] = [];
    for (let kill = 0; kill < kills; kill += 1) killed.push(await killOne());
    const before = counts.most;

    await redis.kill();
    await until('each process serves as many requests as allowed', () =>
      processes.every((at) => ofProcess(at).now >= limit),
    );
    await refuseEverywhere();
    await redis.restart();
    await until('Redis has the leases of all processes', async () => {
      const stored = await inspector.hget(redisKeys.quota.name(prefix, key.entry.id), 'leases');
      return stored?.trim().split(' ').length === 3 * processes.length;
    });
    const ofOneWhileAway = Math.max(...processes.map((at) => ofProcess(at).most));
    // Two processes together still serve more requests than the limit allows.
    const rest = counts.now - ofProcess(0).now;
    for (const response of backend.open()) if (response.req.url?.endsWith('=0')) response.end('[]');
    await until('the requests of one process have ended', () => ofProcess(0).now === 0);
    await refuseEverywhere();
    const admittedAfter = counts.now - rest;
    for (const response of backend.open()) response.end('[]');
    await until('the requests from the outage have ended', () => counts.now <= limit);
    counts.most = counts.now;
    await turnOver();
    await until('all places are used again', () => counts.now >= limit);
    const after = counts.most;
    return {
      openAtKill: killed.map(({ open }) => open),
      usableAfterMs: killed.map(({ usableAfterMs }) => usableAfterMs),
      refused: refused.reduce((sum, count) => sum + count, 0),
      most: { before, ofOneWhileAway, admittedAfter, after },
    };
  } finally {
    stopped = true;
    backend.close();
    inspector.disconnect();
    await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
    await Promise.all([...clients, redis.stop()]);
  }
}
