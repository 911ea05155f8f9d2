/**
 * The thread of `greedy-tunnels.ts`: a backend for WebSockets, and clients of one key that open WebSockets. Both sides write as fast as the
 * other side reads, until the thread receives a stop message.
 */
import { connect, createServer, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { okResponse } from '../support/recording-backend.ts';
import { switchingProtocols } from '../support/web-socket.ts';

export interface GreedyTunnelsOrder {
  readonly tunnels: number;
  /** The number of octets in one write. */
  readonly octets: number;
}

/** The worker opens WebSockets at `port`, with each secret in turn. Without secrets the worker connects to its own backend. */
export interface GreedyTunnelsStart {
  readonly port: number;
  readonly secrets: readonly string[];
}

const { tunnels, octets } = workerData as GreedyTunnelsOrder;
const piece = Buffer.alloc(octets, 'x');
let moved = 0;
let clients: Socket[] = [];

const server = createServer({ noDelay: true }, (socket) => {
  socket.once('data', (head) => {
    if (head.includes('/healthz')) {
      socket.end(okResponse(''));
      return;
    }
    socket.write(switchingProtocols);
    flood(socket);
  });
  socket.on('error', () => {});
}).listen(0, '127.0.0.1', () => {
  const address = server.address();
  parentPort?.postMessage(typeof address === 'object' && address !== null ? address.port : 0);
});

function flood(socket: Socket): void {
  socket.on('data', (received) => {
    moved += received.length;
  });
  const write = () => {
    if (socket.destroyed) return;
    if (socket.write(piece)) setImmediate(write);
    else socket.once('drain', () => setImmediate(write));
  };
  write();
}

function open({ port, secrets }: GreedyTunnelsStart): Promise<void> {
  return new Promise((resolve) => {
    let left = tunnels;
    clients = Array.from({ length: tunnels }, (_, index) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      socket.on('error', () => {});
      const secret = secrets[index % secrets.length] ?? '';
      const fields = `Authorization: Bearer ${secret}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`;
      socket.write(`GET /v1/feed HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);
      socket.once('data', (head) => {
        if (!head.includes(' 101 ')) throw new Error(String(head));
        flood(socket);
        if (--left === 0) resolve();
      });
      return socket;
    });
  });
}

parentPort?.on('message', async (message: GreedyTunnelsStart | 'stop') => {
  if (message !== 'stop') {
    await open(message);
    moved = 0;
    parentPort?.postMessage('opened');
    return;
  }
  for (const socket of clients) socket.destroy();
  parentPort?.postMessage(moved);
});
