import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { originOf } from '../support/fleet.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeCustomKey, testConfig } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';

export interface StrayOctets {
  readonly requests: number;
  /** The number of backend connections that carried requests of both keys. */
  readonly shared: number;
  /** The responses that contained octets of another response. The other response may belong to the same key or to the other key. */
  readonly crossed: readonly string[];
  /** The responses to the unaffected key, by status. */
  readonly others: Record<number, number>;
  readonly failures: readonly string[];
}

type Stray = (socket: Socket, of: string) => void;

const responseTo = (of: string) => okResponse(`{"of":"${of}"}`);
const strayBody = (of: string) => `{"stray":"${of}","of":"nobody"}`;
const strayResponse = (of: string) => okResponse(strayBody(of));
/** A response to HEAD, or with status 204 or 304, has no body. */
const headOnly = (status: number, of: string) =>
  `HTTP/1.1 ${status} X\r\nX-Of: ${of}\r\nContent-Length: ${strayBody(of).length}\r\n\r\n`;

/** The times at which the backend sends the stray octets. */
const delays: readonly ((send: () => void) => void)[] = [
  (send) => send(),
  (send) => void setImmediate(send),
  (send) => void setTimeout(send, 1),
  (send) => void setTimeout(send, 50),
];

/**
 * The responses, each with the stray octets that follow it. The test splits the octets at every position, and combines each split with
 * every delay.
 */
const strays: readonly {
  readonly method: string;
  readonly head: (of: string) => string;
  readonly tail: (of: string) => string;
}[] = [
  { method: 'HEAD', head: (of) => headOnly(200, of), tail: strayBody },
  { method: 'HEAD', head: (of) => headOnly(200, of), tail: strayResponse },
  { method: 'GET', head: (of) => headOnly(204, of), tail: strayBody },
  { method: 'GET', head: (of) => headOnly(204, of), tail: strayResponse },
  { method: 'GET', head: (of) => headOnly(304, of), tail: strayBody },
  { method: 'GET', head: (of) => headOnly(304, of), tail: strayResponse },
  { method: 'GET', head: responseTo, tail: strayBody },
];

/**
 * Two keys share connections to one backend, which sends stray octets after its responses to the first key. While the connection serves the
 * next request, the backend sends no complete stray response. An HTTP/1.1 client could not distinguish such a response from the real
 * response.
 */
export async function measureStrayOctets({ requests }: { readonly requests: number }): Promise<StrayOctets> {
  const bad = makeCustomKey(1_000_000_000, 1_000_000_000);
  const good = makeCustomKey(1_000_000_000, 1_000_000_000);
  const keysOfConnection = new Map<number, Set<string>>();
  const backend = await startRecordingBackend({
    react: ({ connection, head, target }, socket) => {
      const keyId = /\r\nX-Key-Id: (.*)\r\n/.exec(head)?.[1] ?? '';
      keysOfConnection.set(connection, (keysOfConnection.get(connection) ?? new Set()).add(keyId));
      backend.requests.length = 0;
      const of = target.split('n=')[1] ?? '';
      if (keyId === good.entry.id) socket.write(responseTo(of));
      else straying(Number(of.split('-')[1]))(socket, of);
    },
  });
  const gateway = await startGatewayHere(
    testConfig({ upstream: { url: backend.url, health: '/healthz' }, keys: [bad.entry, good.entry] }),
    {},
  );
  const crossed: string[] = [];
  const failures: string[] = [];
  const others: Record<number, number> = {};
  let sent = 0;

  async function runClient(of: 'bad' | 'good'): Promise<void> {
    const client = new Client(originOf(gateway));
    while (sent < requests) {
      const n = sent++;
      const name = `${of}-${n}`;
      const method = of === 'bad' ? strays[n % strays.length]?.method : 'GET';
      try {
        const { statusCode, body, headers } = await client.request({
          path: `/v1/pets?n=${name}`,
          method: method === 'HEAD' ? 'HEAD' : 'GET',
          headers: { authorization: `Bearer ${(of === 'bad' ? bad : good).secret}` },
        });
        const text = await body.text();
        if (of === 'good') others[statusCode] = (others[statusCode] ?? 0) + 1;
        const isOwn = text === '' || text === `{"of":"${name}"}` || statusCode >= 500;
        const isOwnHead = headers['x-of'] === undefined || headers['x-of'] === name;
        if (!isOwn || !isOwnHead || text.includes('stray')) crossed.push(`${name} got ${statusCode} ${text}`);
      } catch (error) {
        failures.push(`${name}: ${error}`);
      }
    }
    await client.close();
  }

  try {
    await Promise.all(Array.from({ length: 16 }, (_, i) => runClient(i % 2 === 0 ? 'bad' : 'good')));
    await sleep(100);
    const shared = [...keysOfConnection.values()].filter(({ size }) => size === 2).length;
    return { requests: sent, shared, crossed, others, failures };
  } finally {
    await gateway.stop('SIGKILL');
    await backend.close();
  }
}

/** The n-th variant: the response, the time of the stray octets, and the position of the split. */
function straying(n: number): Stray {
  const { head, tail } = strays[n % strays.length] ?? { head: responseTo, tail: strayBody };
  const delay = delays[Math.floor(n / strays.length) % delays.length];
  return (socket, of) => {
    const rest = tail(of);
    const cut = (n * 7) % rest.length;
    if (delay === delays[0]) {
      socket.write(head(of) + rest);
      return;
    }
    socket.write(head(of));
    delay?.(() => {
      socket.write(rest.slice(0, cut));
      setImmediate(() => socket.write(rest.slice(cut)));
    });
  };
}
