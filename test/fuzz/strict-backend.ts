import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { okResponse } from '../support/recording-backend.ts';
import { type ReadRequest, readRequests } from './read-requests.ts';

export interface StrictBackend {
  readonly url: string;
  /** The requests since the last call, excluding health checks. */
  take(): BackendSight;
  close(): Promise<void>;
}

export interface BackendSight {
  /** `body` is undefined when the gateway cut the request off in the middle of its body. */
  readonly requests: readonly ReadRequest[];
  /** Bytes that are not a request, or that arrived before the previous request had its response. */
  readonly faults: readonly string[];
}

/**
 * A backend on raw sockets with the strict parser. Broken framing and surplus bytes are reported as faults. The backend answers each
 * request with 200 and the request id that it received.
 */
export async function startStrictBackend(): Promise<StrictBackend> {
  const sockets = new Set<Socket>();
  let requests: ReadRequest[] = [];
  let faults: string[] = [];

  const server = createServer((socket) => {
    let unread = '';
    sockets.add(socket);
    socket.setEncoding('latin1');
    socket.on('error', () => {});
    socket.on('data', (text: string) => {
      unread += text;
      const { requests: found, end, why } = readRequests(unread);
      if (end === 'malformed') faults.push(`the backend received ${why} in ${JSON.stringify(unread)}`);
      if (found.length > 1)
        faults.push(`the backend received bytes behind a request: ${JSON.stringify(unread)}`);
      if (end === 'malformed' || found.length > 1) {
        socket.destroy();
        return;
      }
      const [request] = found;
      if (request?.body === undefined) return;
      unread = '';
      record(request);
      socket.write(responseTo(request));
    });
    socket.on('close', () => {
      sockets.delete(socket);
      for (const partial of readRequests(unread).requests) record(partial);
    });
  });

  function record(request: ReadRequest): void {
    if (request.target !== '/healthz') requests.push(request);
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    take() {
      const sight = { requests, faults };
      requests = [];
      faults = [];
      return sight;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function responseTo({ method, fields }: ReadRequest): string {
  const seen = fields.find(({ name }) => name === 'x-request-id')?.value ?? null;
  const response = okResponse(JSON.stringify({ seen }), 200, ['Content-Type: application/json']);
  return method === 'HEAD' ? response.slice(0, response.indexOf('\r\n\r\n') + 4) : response;
}
