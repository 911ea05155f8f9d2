import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';

/**
 * `gateway/redis/ioredis-patches.ts` replaces these members. Tests with a Cluster and with Sentinels show the effect.
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
    resolve: connector.resolve,
    connectToSentinel: connector.connectToSentinel,
  };
  for (const [name, member] of Object.entries(members))
    expect([name, typeof member]).toEqual([name, 'function']);
});
