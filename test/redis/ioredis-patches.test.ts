import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { until } from '../support/until.ts';

/**
 * `gateway/redis/ioredis-patches.ts` replaces the members of ioredis that this test names. Tests with a Cluster and with Sentinels
 * show the effect of the replacements.
 */
it('ioredis has every member that the gateway replaces', () => {
  const client = new Redis({ lazyConnect: true, name: 'm', sentinels: [{ host: '127.0.0.1', port: 1 }] });
  onTestFinished(() => client.disconnect());
  const { connector } = client as unknown as { connector: Record<string, unknown> };
  const members = {
    asking: client.asking,
    disconnect: client.disconnect,
    duplicate: client.duplicate,
    emit: client.emit,
    setStatus: (client as unknown as Record<string, unknown>).setStatus,
    resolve: connector.resolve,
    connect: connector.connect,
    connectToSentinel: connector.connectToSentinel,
  };
  for (const [name, member] of Object.entries(members))
    expect([name, typeof member]).toEqual([name, 'function']);
});

/** A cleartext alert. After a handshake, TLS 1.3 allows only encrypted records. */
const brokenRecord = Buffer.from([0x15, 3, 3, 0, 2, 2, 0x32]);

it('a TLS connection to Redis that gets a broken record and is then reset is made anew, and no error is uncaught', async () => {
  const broken = await uncaughtErrors({ isTrusted: true }, (client, server, secure) => {
    client.pipe(server).pipe(client, { end: false });
    void secure.then((socket) =>
      socket.once('data', () => {
        // The client reacts to the broken record with an error and a TLS alert. After the alert, the relay resets the connection.
        client.write(brokenRecord);
        client.once('data', () => client.resetAndDestroy());
      }),
    );
  });
  expect(broken).toEqual([]);
});

it('a broken record together with an untrusted certificate leaves no error of a Redis connection uncaught', async () => {
  const broken = await uncaughtErrors({ isTrusted: false }, (client, server) => {
    client.pipe(server);
    // The broken record arrives together with the end of the handshake, so the connection has two errors before ioredis handles it.
    server.once('data', (flight: Buffer) => client.write(Buffer.concat([flight, brokenRecord])));
  });
  expect(broken).toEqual([]);
});

/**
 * Connects to Redis over a relay that breaks the connections.
 *
 * @returns the uncaught errors of ten connections
 */
async function uncaughtErrors(
  { isTrusted }: { readonly isTrusted: boolean },
  relayBetween: (client: Socket, server: Socket, secure: Promise<Socket>) => void,
): Promise<unknown[]> {
  const certificate = makeCertificate();
  const redis = createTlsServer(certificate).listen(0, '127.0.0.1');
  onTestFinished(() => void redis.close());
  await once(redis, 'listening');
  let broken = 0;
  const relay = createServer((client) => {
    const server = connect((redis.address() as AddressInfo).port, '127.0.0.1');
    for (const socket of [client, server]) socket.on('error', () => {});
    client.once('close', () => {
      server.destroy();
      broken++;
    });
    const secure = new Promise<Socket>((resolve) => {
      redis.once('secureConnection', (socket) => resolve(socket.on('error', () => {})));
    });
    relayBetween(client, server, secure);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void relay.close());
  await once(relay, 'listening');
  const uncaught: unknown[] = [];
  const note = (error: unknown) => void uncaught.push(error);
  process.on('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  const url = `redis://127.0.0.1:${(relay.address() as AddressInfo).port}`;
  const client = openRedis(
    { url, prefix: '', tls: { ca: isTrusted ? certificate.cert : makeCertificate().cert } },
    { ...defaultBounds, storeReconnectMaxMs: 1 },
  );
  onTestFinished(() => client.close());
  await until('ten connections have failed', () => broken >= 10);
  return uncaught;
}
