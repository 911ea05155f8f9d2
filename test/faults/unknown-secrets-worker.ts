/** The thread of `unknown-secrets.ts`: sends requests at a pace, whatever becomes of those before, until it is told to stop. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

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

/** Short, so that the requests come one by one and not as a burst. */
const tickMs = 1;
const connections = 64;
const { origin, perSecond, addresses } = workerData as FloodOrder;
const { hostname, port } = new URL(origin);
const statuses: Record<number, number> = {};
const failures: string[] = [];
const startedMs = performance.now();
let sent = 0;

// Plain sockets: a client that takes less of the processor than the gateway leaves it to the gateway.
const idle: Socket[] = [];
const sockets = await Promise.all(Array.from({ length: connections }, open));

async function open(): Promise<Socket> {
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.setNoDelay(true);
  socket.on('error', (error) => failures.push(String(error)));
  let received = '';
  socket.setEncoding('latin1');
  socket.on('data', (text) => {
    received += text;
    const head = received.indexOf('\r\n\r\n');
    const length = /\r\ncontent-length: (\d+)/i.exec(received)?.[1];
    if (head < 0 || received.length < head + 4 + Number(length)) return;
    const status = Number(received.slice(9, 12));
    statuses[status] = (statuses[status] ?? 0) + 1;
    received = '';
    idle.push(socket);
  });
  idle.push(socket);
  return socket;
}

const timer = setInterval(() => {
  const due = Math.floor(((performance.now() - startedMs) / 1_000) * perSecond);
  while (sent < due) {
    const socket = idle.shift();
    if (socket === undefined) return;
    send(socket, sent++);
  }
}, tickMs);

function send(socket: Socket, number: number): void {
  const address = number % addresses;
  const from = `10.${address >> 16}.${(address >> 8) & 255}.${address & 255}`;
  socket.write(
    `GET /v1/pets HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${randomUUID()}\r\nX-Forwarded-For: ${from}\r\n\r\n`,
  );
}

parentPort?.once('message', async () => {
  clearInterval(timer);
  const seconds = (performance.now() - startedMs) / 1_000;
  for (const socket of sockets) socket.destroy();
  parentPort?.postMessage({ statuses, failures, perSecond: sent / seconds } satisfies FloodOutcome);
});
