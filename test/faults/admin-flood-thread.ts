/** The thread of `admin-flood.ts`: clients of one address send requests to the admin listener until the thread receives a message. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

export interface Flood {
  readonly port: number;
  readonly localAddress: string;
  readonly clients: number;
  /** The octets that a client sends repeatedly. */
  readonly bytes: string;
  /**
   * Whether a client opens a new connection each time that it sends the octets. If false, the client sends the octets
   * again after each response.
   */
  readonly reconnects: boolean;
}

export interface FloodResult {
  readonly connections: number;
  /** Responses by status. */
  readonly statuses: Record<string, number>;
}

const { port, localAddress, clients, bytes, reconnects } = workerData as Flood;
let connections = 0;
const statuses: Record<string, number> = {};
let isStopped = false;

async function runClient(): Promise<void> {
  while (!isStopped) {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    connections += 1;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const [, status = ''] of data.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (!reconnects && !isStopped) socket.write(bytes);
      }
    });
    socket.write(bytes);
    await new Promise((resolve) => socket.once('close', resolve));
  }
}

const done = Promise.all(Array.from({ length: clients }, runClient));
parentPort?.once('message', async () => {
  isStopped = true;
  parentPort?.postMessage({ connections, statuses } satisfies FloodResult);
  await Promise.race([done, sleep(1_000)]);
});
