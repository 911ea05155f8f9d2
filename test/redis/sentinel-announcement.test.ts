import { expect, it, onTestFinished } from 'vitest';
import { connectRedis } from '../support/connect-redis.ts';
import { startSentinel } from '../support/start-sentinel.ts';
import { startTcpRelay } from '../support/tcp-relay.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The pauses between attempts are very short, so the client queries a Sentinel almost all the time. */
const bounds = tunedBounds({ ...patientStore, storeReconnectMaxMs: 10 });

it('a connection attempt starts over when another master is announced during its query of a Sentinel', async () => {
  const { name, hosts, servers, failOver, stop } = await startSentinel();
  onTestFinished(stop);
  const relays = await Promise.all(hosts.map((host) => startTcpRelay(Number(host.split(':')[1]))));
  onTestFinished(() => Promise.all(relays.map((relay) => relay.stop())).then(() => {}));
  const place = { sentinel: { name, hosts: relays.map(({ port }) => `127.0.0.1:${port}`) } };
  const connections = await Promise.all(
    Array.from({ length: 8 }, () => connectRedis({ prefix: 'test', place, bounds })),
  );
  onTestFinished(() => {
    for (const connection of connections) connection.close();
  });

  // The relays are so slow that connections still wait for a Sentinel's reply when the announcement arrives.
  for (const relay of relays) relay.delay({ toServerMs: 0, toClientMs: 300 });
  await servers[0]?.server.kill();
  await failOver();
  for (const relay of relays) relay.delay({ toServerMs: 0, toClientMs: 0 });
  await until('every connection has the new master', () =>
    connections.every((connection) => connection.isReady('')),
  );
  const clocks = await Promise.all(connections.map((connection) => connection.clockOf('')));
  expect(clocks.every(Number.isInteger)).toBe(true);
});
