/** The thread of `unknown-secrets.ts`: sends requests at a pace, whatever becomes of those before, until it is told to stop. */
import { randomUUID } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { Pool } from 'undici';

export interface FloodOrder {
  readonly origin: string;
  readonly perSecond: number;
  readonly addresses: number;
}

export interface FloodOutcome {
  readonly statuses: Record<number, number>;
  readonly failures: readonly string[];
  readonly perSecond: number;
}

const tickMs = 5;
const { origin, perSecond, addresses } = workerData as FloodOrder;
const pool = new Pool(origin, { connections: 64 });
const statuses: Record<number, number> = {};
const failures: string[] = [];
const startedMs = performance.now();
let sent = 0;

const timer = setInterval(() => {
  const due = Math.floor(((performance.now() - startedMs) / 1_000) * perSecond);
  while (sent < due) void send(sent++);
}, tickMs);

async function send(number: number): Promise<void> {
  const address = number % addresses;
  const headers = {
    authorization: `Bearer ${randomUUID()}`,
    'x-forwarded-for': `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`,
  };
  try {
    const { statusCode, body } = await pool.request({ path: '/v1/pets', method: 'GET', headers });
    await body.dump();
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
  } catch (error) {
    failures.push(String(error));
  }
}

parentPort?.once('message', async () => {
  clearInterval(timer);
  const seconds = (performance.now() - startedMs) / 1_000;
  await pool.close();
  parentPort?.postMessage({ statuses, failures, perSecond: sent / seconds } satisfies FloodOutcome);
});
