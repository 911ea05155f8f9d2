/**
 * The thread that `unknown-secrets.ts` starts. The thread sends requests at a steady rate, each on an idle connection, until it receives a
 * stop message.
 */
import { randomUUID } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { openRawClient, type RawClient } from '../support/raw-http.ts';

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

/** The interval is short, so that requests do not arrive in bursts. */
const tickMs = 1;
const connections = 64;
const { origin, perSecond, addresses } = workerData as FloodOrder;
const { port } = new URL(origin);
const statuses: Record<number, number> = {};
const failures: string[] = [];
const startedMs = performance.now();
let sent = 0;
let isStopped = false;

// Plain sockets use little CPU time, which leaves more CPU time to the gateway.
const clients = await Promise.all(Array.from({ length: connections }, () => openRawClient(Number(port))));
const idle = [...clients];

const timer = setInterval(() => {
  const due = Math.floor(((performance.now() - startedMs) / 1_000) * perSecond);
  while (sent < due) {
    const client = idle.shift();
    if (client === undefined) return;
    void send(client, sent++);
  }
}, tickMs);

async function send(client: RawClient, number: number): Promise<void> {
  const address = number % addresses;
  const from = `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`;
  client.send(
    `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${randomUUID()}\r\nX-Forwarded-For: ${from}\r\n\r\n`,
  );
  try {
    const { status } = await client.response();
    statuses[status] = (statuses[status] ?? 0) + 1;
    idle.push(client);
  } catch (error) {
    if (!isStopped) failures.push(String(error));
  }
}

parentPort?.once('message', async () => {
  clearInterval(timer);
  const seconds = (performance.now() - startedMs) / 1_000;
  isStopped = true;
  for (const client of clients) client.destroy();
  parentPort?.postMessage({ statuses, failures, perSecond: sent / seconds } satisfies FloodOutcome);
});
