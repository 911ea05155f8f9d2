import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { createRedisUsageStore } from '../../gateway/usage/store/redis-usage-store.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { originOf, startFleet } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { quantile, startLoad } from '../support/load.ts';
import { residentBytes } from '../support/process-figures.ts';
import { until } from '../support/until.ts';
import type { AdminFlood, FloodResult } from './admin-load-thread.ts';
import { trafficFields, usageFields } from './usage-of-a-day.ts';

/** The requests that one token repeats, on several connections at the same time. */
export const worsts = {
  'simulations with 4 MiB of keys': { method: 'POST', path: '/simulate', keysInBody: 300_000 },
  'simulations with 10,000 keys': { method: 'POST', path: '/simulate', keysInBody: 10_000 },
  'simulations of a day': { method: 'POST', path: '/simulate', days: 1 },
  'simulations of eight days': { method: 'POST', path: '/simulate', days: 8 },
  settings: { path: '/settings' },
  plans: { path: '/plans' },
  'the API document': { path: '/openapi.json' },
  'traffic of eight days by minute': { path: '/traffic', days: 8 },
  'usage of eight days by minute': { path: '/keys/customer-000000/usage', days: 8 },
  'lists of keys': { path: '/keys?limit=500' },
  'one key': { path: '/keys/customer-000000' },
  states: { path: '/state' },
  'a path that does not exist': { path: '/nothing' },
} as const satisfies Record<string, AdminFlood['asked']>;
type Worst = keyof typeof worsts;

export interface AdminLoad {
  readonly worst: Worst;
  /** The times of other keys' requests: without the flood, and during the flood. */
  readonly p50Ms: { readonly alone: number; readonly beside: number };
  /** During the flood, another operator requests the list of keys and the state. The slowest request took `operatorMs`. */
  readonly operatorMs: number;
  readonly operatorStatuses: readonly number[];
  /**
   * The time from the change of a key until the gateway refuses its requests. Two keys are changed: one key by the API, and one key in the
   * keys file.
   */
  readonly revokedMs: { readonly byApi: number; readonly inFile: number };
  /** The gateway's memory at the end of the flood. */
  readonly residentBytes: number;
  readonly flood: FloodResult;
  readonly failures: readonly string[];
}

export interface AdminLoadOptions {
  readonly worst: readonly Worst[];
  /** The number of keys in the keys file, and the number of these keys with a record of eight days. */
  readonly keys: number;
  readonly recorded: number;
  /** The number of the flood's connections. */
  readonly connections: number;
  readonly goodRequests: number;
  readonly workers?: number;
}

const dayMs = 86_400_000;

/**
 * Measures API clients and operators while one token with read access sends the most expensive requests, one
 * kind after the other.
 */
export async function measureAdminLoad(options: AdminLoadOptions): Promise<readonly AdminLoad[]> {
  const [operator, writer] = [makeToken('read'), makeToken('write')];
  // Each kind of request has its own token, because requests of the previous kind may still be queued.
  const flooders = options.worst.map((worst) => ({ worst, ...makeToken('read') }));
  const limits = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
  const good = makeCustomKey(limits.perMinute, limits.perDay);
  const victim = makeCustomKey(limits.perMinute, limits.perDay);
  const idle = Array.from({ length: options.keys }, (_, index) => ({
    id: idOf(index),
    plan: 'free',
    secrets: [{ sha256: index.toString(16).padStart(64, '0') }],
  }));
  const entries = [good.entry, victim.entry, ...idle];
  const tokens = [...flooders, operator, writer].map(({ entry }) => entry);
  const fleet = await startFleet({
    starts: [{}],
    files: { 'keys.yaml': entries },
    config: {
      keys: { file: 'keys.yaml', directory: true },
      admin: { host: '127.0.0.1', port: 0, tokens },
      ...(options.workers && { workers: options.workers }),
    },
  });
  try {
    const [gateway] = fleet.gateways;
    if (gateway === undefined) throw new Error('a gateway was started');
    await fillRecord({ url: fleet.redis.url, prefix: fleet.prefix, keys: options.recorded });
    const port = Number(new URL(gateway.adminUrl).port);
    const customers = () =>
      startLoad({
        origins: [originOf(gateway)],
        secrets: [good.secret],
        clients: 4,
        pauseMs: 5,
        requestsMax: options.goodRequests,
      }).done;
    const keysFile = join(gateway.configDir, 'keys.yaml');
    const keysText = await readFile(keysFile, 'utf8');
    const victimLine = `- id: ${victim.entry.id}\n`;
    await customers();
    const found: AdminLoad[] = [];
    for (const [index, { worst, token }] of flooders.entries()) {
      const alone = await customers();
      const flood = startFlood({
        port,
        token,
        connections: options.connections,
        asked: worsts[worst],
      });
      await sleep(500);
      const beside = await customers();
      let operatorMs = 0;
      const operatorStatuses: number[] = [];
      for (const path of ['/keys?limit=10', '/state', '/keys?limit=10']) {
        const sentMs = performance.now();
        const { status } = await askAdmin(port, `/api/v1${path}`, { token: operator.token });
        operatorMs = Math.max(operatorMs, performance.now() - sentMs);
        operatorStatuses.push(status);
      }
      const api = (method: string, path: string, json: object) =>
        askAdmin(port, `/api/v1${path}`, { method, json, token: writer.token });
      const id = `issued-${index}`;
      const { secret } = (await api('POST', '/keys', { id, plan: 'enterprise', limits })).body;
      await isAnswered(gateway.baseUrl, secret, 200);
      const byApi = await timed(async () => {
        await api('PATCH', `/keys/${id}`, { disabled: true });
        await isAnswered(gateway.baseUrl, secret, 401);
      });
      const inFile = await timed(async () => {
        await writeFile(keysFile, keysText.replace(victimLine, `${victimLine}  disabled: true\n`));
        await isAnswered(gateway.baseUrl, victim.secret, 401);
      });
      const resident = residentBytes(gateway.child.pid ?? 0);
      const result = await flood.stop();
      await writeFile(keysFile, keysText);
      await isAnswered(gateway.baseUrl, victim.secret, 200);
      const { failures } = beside;
      const p50Ms = { alone: quantile(alone.responses, 0.5), beside: quantile(beside.responses, 0.5) };
      const revokedMs = { byApi, inFile };
      found.push({
        worst,
        p50Ms,
        operatorMs,
        operatorStatuses,
        revokedMs,
        residentBytes: resident,
        flood: result,
        failures,
      });
    }
    return found;
  } finally {
    await fleet.stop();
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await work();
  return performance.now() - beganMs;
}

function idOf(index: number): string {
  return `customer-${String(index).padStart(6, '0')}`;
}

async function isAnswered(baseUrl: string, secret: string, status: number): Promise<void> {
  await until(`the key is answered ${status}`, async () => {
    const response = await fetch(`${baseUrl}/pets`, { headers: { authorization: `Bearer ${secret}` } });
    await response.arrayBuffer();
    return response.status === status;
  });
}

/** Writes a record of eight days in which these keys sent requests in every minute. */
async function fillRecord({
  url,
  prefix,
  keys,
}: {
  url: string;
  prefix: string;
  keys: number;
}): Promise<void> {
  const redis = openRedis({ url, prefix }, defaultBounds);
  const store = createRedisUsageStore({
    redis,
    keptMs: 30 * dayMs,
    bounds: { ...defaultBounds, usageCallTimeoutMs: 60_000 },
  });
  await until('Redis is available', () => redis.isReady(''));
  const today = Math.floor(Date.now() / dayMs);
  const ids = Array.from({ length: keys }, (_, index) => idOf(index));
  await store.noteActive(ids.map((keyId) => ({ keyId, lastSeenMs: Date.now() })));
  for (let day = today - 8; day <= today; day++) {
    const batch = { sender: 'test', number: 1, expiresMs: Date.now() + 30 * dayMs };
    await store.add({ ...batch, record: { kind: 'operations', day }, fields: trafficFields() });
    for (let from = 0; from < ids.length; from += 50) {
      const part = ids.slice(from, from + 50);
      await Promise.all(
        part.map((keyId) =>
          store.add({ ...batch, record: { kind: 'day', keyId, day }, fields: usageFields() }),
        ),
      );
    }
  }
  store.close();
  redis.close();
}

/** The flood runs in its own thread, so that it does not delay the API clients in this thread. */
function startFlood(flood: AdminFlood): { stop(): Promise<FloodResult> } {
  const thread = new Worker(new URL('admin-load-thread.ts', import.meta.url), { workerData: flood });
  const result = new Promise<FloodResult>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
  return {
    async stop() {
      thread.postMessage('stop');
      const found = await result;
      await thread.terminate();
      return found;
    },
  };
}
