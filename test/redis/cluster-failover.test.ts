import keySlot from 'cluster-key-slot';
import { expect, it, onTestFinished } from 'vitest';
import { connectRedis } from '../support/connect-redis.ts';
import { startCluster } from '../support/start-cluster.ts';
import { until } from '../support/until.ts';

it('a connection that sends no command to a dead master finds the replica that replaces it', async () => {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  const redis = await connectRedis({ prefix: 'test', place: { cluster: cluster.urls } });
  onTestFinished(() => redis.close());
  const key = 'test:a-key';
  const index = cluster.masters.indexOf(cluster.ownerOf(keySlot(key)));
  await cluster.promoteAfter(500);
  await cluster.masters[index]?.server.kill();
  await until('the connection is lost', () => !redis.isReady(key));
  await until('the replica serves the key', () => redis.isReady(key));
  expect(redis.nodeOf(key).name).toBe(cluster.replicas[index]?.name);
  expect(await redis.commands.set(key, 'written')).toBe('OK');
});
