import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createLimiter } from '../../../gateway/request/limit/limiter.ts';
import { measureClusterFailover, measureLostReply, measureMigration } from '../../faults/cluster.ts';
import { openBareLimiters } from '../../faults/limiters.ts';
import { freePort } from '../../support/free-port.ts';
import { startCluster } from '../../support/start-cluster.ts';
import { startRedis } from '../../support/start-redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

it('exactly the limit of a key is admitted while its slot moves from server to server, and Redis decides every request', async () => {
  const found = await measureMigration({ limit: 1_000, requests: 3_000, movesMin: 5 });
  expect(found).toMatchObject({ requests: 3_000, admitted: 1_000, used: 1_000, local: 0 });
  expect(found.moves).toBeGreaterThanOrEqual(5);
});

it('a master that dies between a script and its reply charges nothing twice', async () => {
  const { sent, counted, countedByDefault } = await measureLostReply();
  expect(counted).toBe(sent);
  // A Redis client with default settings repeats a command that gets no reply, so Redis counts the command
  // twice. The test would therefore detect a repeated command.
  expect(countedByDefault).toBe(2);
});

it('limits are exact again after the failover of one server, and the other servers stay reachable', async () => {
  const { admitted, used, logged, limit } = await measureClusterFailover(40);
  expect(admitted).toEqual({ before: 20, away: 10, after: 10 });
  expect(used).toBe(limit);
  for (const messages of logged) {
    // The outage may have several reasons, for example a closed connection and then a refused connection.
    expect(messages.filter((message) => !message.includes(' still away'))).toEqual([
      expect.stringMatching(/^Redis server 127\.0\.0\.1:\d+ is away$/),
      expect.stringMatching(/^Redis server 127\.0\.0\.1:\d+ is back$/),
    ]);
  }
});

it('the state of a Cluster that cannot be reached has the newest reason', async () => {
  const port = await freePort();
  const limiter = createLimiter({
    redis: { cluster: [`redis://127.0.0.1:${port}`], prefix: 'test', onFailure: 'local' },
    log: pino({ level: 'silent' }),
    nowMs: Date.now,
    planOf: () => undefined,
    bounds: tunedBounds({ ...patientStore, storeSlotsTimeoutMs: 20_000, storeStartTimeoutMs: 100 }),
  });
  onTestFinished(() => limiter.close());
  const states = (reason: string) => JSON.stringify(limiter.state()).includes(reason);
  await until('nothing listens', () => states('ECONNREFUSED'));
  const server = await startRedis([], port);
  onTestFinished(server.stop);
  await until('the server is no Cluster', () => states('cluster support disabled'));
});

it('an address has one bucket over all processes, on any server', async () => {
  const cluster = await startCluster({ hasReplicas: false });
  const place = { cluster: cluster.urls };
  const all = await openBareLimiters(2, { place, prefix: 'test', bounds: patientStore });
  try {
    for (let address = 1; address <= 20; address++) {
      const charges = [];
      for (let request = 0; request < 6; request++) {
        charges.push(await all[request % 2]?.limiter.chargeAddress(`192.0.2.${address}`, 5));
      }
      expect(charges.map((charge) => charge?.kind)).toEqual([...Array(5).fill('counted'), 'refused']);
      expect(new Set(charges.map((charge) => charge?.source))).toEqual(new Set(['shared']));
    }
    const counts = await Promise.all(
      cluster.masters.map(({ inspector }) => inspector.keys('test:address:*')),
    );
    expect(counts.flat()).toHaveLength(20);
    for (const names of counts) expect(names.length).toBeGreaterThan(0);
  } finally {
    await Promise.all(all.map(({ limiter }) => limiter.close()));
    await cluster.stop();
  }
});
