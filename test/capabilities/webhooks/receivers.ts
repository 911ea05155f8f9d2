import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Receiver } from '../../../gateway/capabilities/webhooks/settings/receivers.ts';

/** A request that a receiver got. */
interface Received {
  readonly id: string;
  readonly type: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The time of the arrival, on the clock of `performance.now()`. */
  readonly atMs: number;
}

export interface TestReceiver {
  readonly receiver: Pick<Receiver, 'id' | 'url' | 'secrets'>;
  /** The requests whose signature is right, in the order of their arrival. */
  readonly received: readonly Received[];
  /** The ids of the requests that got a status from 200 to 299. */
  readonly accepted: readonly string[];
  /** The requests whose signature is wrong. */
  readonly refused: readonly string[];
  /** Replaces the responses from now on. */
  respond(response: Response): void;
  close(): Promise<void>;
}

export type Response = (response: ServerResponse, received: Received) => void;

/** Responds with a status. */
export function status(code: number, headers: Record<string, string> = {}): Response {
  return (response) => void response.writeHead(code, headers).end();
}

/** Never responds. */
export const hang: Response = () => {};

/** Responds 200 with a body of 1 GB. */
export const gigabyte: Response = (response) => {
  const chunk = Buffer.alloc(65_536);
  let left = 1_000_000_000;
  const write = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length;
      if (!response.write(chunk)) return void response.once('drain', write);
    }
    response.end();
  };
  response.writeHead(200);
  write();
};

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** Starts a receiver that verifies each request with the package of the standard. */
export async function startReceiver(id: string, first: Response = status(204)): Promise<TestReceiver> {
  const received: Received[] = [];
  const accepted: string[] = [];
  const refused: string[] = [];
  let respond = first;
  const server = createServer((request, response) => {
    response.on('error', () => {});
    void readBody(request).then((body) => {
      const headers = request.headers as Record<string, string>;
      const one = {
        id: headers['webhook-id'] ?? '',
        type: typeOf(body),
        body,
        headers,
        atMs: performance.now(),
      };
      response.on('close', () => {
        const { headersSent, statusCode } = response;
        if (headersSent && statusCode >= 200 && statusCode <= 299) accepted.push(one.id);
      });
      try {
        new Webhook(secret).verify(body, headers);
        received.push(one);
      } catch (error) {
        refused.push(`${one.id}: ${error}`);
      }
      respond(response, one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    receiver: { id, url: `http://127.0.0.1:${port}/hook/token-in-path?token=secret`, secrets: [secret] },
    received,
    accepted,
    refused,
    respond: (next) => (respond = next),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Starts a receiver that speaks raw TCP, after it has got the first octets of a request. */
export async function startRawReceiver(id: string, talk: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', () => talk(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    receiver: { id, url: `http://127.0.0.1:${port}/`, secrets: [secret] },
    sockets,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  request.on('error', () => {});
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function typeOf(body: string): string {
  try {
    return JSON.parse(body).type;
  } catch {
    return '';
  }
}
