import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocketServer } from 'ws';

/** The requests in progress at the backend, and the largest number so far. */
export interface Held {
  now: number;
  most: number;
}

/**
 * A backend that holds each request and each WebSocket until the test ends it, and counts the requests and WebSockets
 * in progress.
 */
export async function startHoldingBackend() {
  const held: ServerResponse[] = [];
  const counts: Held = { now: 0, most: 0 };
  /** The requests in progress and their largest number so far, for each query string. */
  const byQuery = new Map<string, Held>();
  const enter = ({ url = '' }: IncomingMessage, closes: ServerResponse | Socket) => {
    const query = url.slice(url.indexOf('?') + 1);
    const ofQuery = byQuery.get(query) ?? { now: 0, most: 0 };
    byQuery.set(query, ofQuery);
    for (const each of [counts, ofQuery]) {
      each.now += 1;
      each.most = Math.max(each.most, each.now);
      closes.once('close', () => {
        each.now -= 1;
      });
    }
  };
  const server = createServer((req, res) => {
    if (req.url === '/healthz') return void res.end();
    enter(req, res);
    held.push(res);
  }).listen(0, '127.0.0.1');
  new WebSocketServer({ server }).on('connection', (_, req) => enter(req, req.socket));
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    /** The requests that `endOne` has not ended. The clients of these requests may have left. */
    held,
    /** The responses to requests in progress. */
    open: () => held.filter(({ destroyed, writableEnded }) => !destroyed && !writableEnded),
    counts,
    of: (query: string): Held => byQuery.get(query) ?? { now: 0, most: 0 },
    endOne: () => void held.shift()?.end('[]'),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
