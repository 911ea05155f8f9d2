import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { until } from '../support/until.ts';

/**
 * `gateway/redis/ioredis-patches.ts` replaces these members of ioredis. Tests with a Cluster and with Sentinels show the effect of the
 * replacements.
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
    connectToSentinel: connector.connectToSentinel,
  };
  for (const [name, member] of Object.entries(members))
    expect([name, typeof member]).toEqual([name, 'function']);
});

it('a TLS connection to Redis that gets a broken record and is then reset is made anew, and no error is uncaught', async () => {
  const certificate = makeCertificate();
  const redis = createTlsServer(certificate).listen(0, '127.0.0.1');
  onTestFinished(() => void redis.close());
  await once(redis, 'listening');
  let broken = 0;
  const relay = createServer((client) => {
    const server = connect((redis.address() as AddressInfo).port, '127.0.0.1');
    for (const socket of [client, server]) socket.on('error', () => {});
    client.pipe(server).pipe(client, { end: false });
    client.once('close', () => server.destroy());
    redis.once('secureConnection', (secure) => {
      secure.on('error', () => {});
      secure.once('data', () => {
        // A cleartext alert where only encrypted records are allowed. ioredis reports the error together with an alert of its own.
        client.write(Buffer.from([0x15, 3, 3, 0, 2, 2, 0x32]));
        client.once('data', () => client.resetAndDestroy());
        broken++;
      });
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void relay.close());
  await once(relay, 'listening');
  const uncaught: unknown[] = [];
  const note = (error: unknown) => void uncaught.push(error);
  process.on('uncaughtException', note);
  onTestFinished(() => void process.off('uncaughtException', note));
  const url = `redis://127.0.0.1:${(relay.address() as AddressInfo).port}`;
  const client = openRedis(
    { url, prefix: '', tls: { ca: certificate.cert } },
    { ...defaultBounds, storeReconnectMaxMs: 1 },
  );
  onTestFinished(() => client.close());
  await until('ten connections have failed', () => broken >= 10);
  expect(uncaught).toEqual([]);
});
