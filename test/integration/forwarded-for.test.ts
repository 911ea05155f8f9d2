import { expect, it, onTestFinished } from 'vitest';
import { readiness } from '../support/fleet.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, testConfig } from '../support/gateway-process.ts';

it('clients behind a proxy that writes ports have separate buckets, and unreadable entries are reported', async () => {
  const key = makeKey({ addresses: ['203.0.113.7', '2001:db8::1'] });
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      keys: [key.entry],
      trustedProxies: ['127.0.0.1'],
      addressBucket: { perMinute: 2 },
    }),
  );
  onTestFinished(async () => void (await gateway.stop()));
  const statusOf = async (forwardedFor: string, secret = 'wrong') => {
    const headers = { authorization: `Bearer ${secret}`, 'x-forwarded-for': forwardedFor };
    return (await fetch(`http://127.0.0.1:${gateway.port}/v1/none`, { headers })).status;
  };
  const unread = async () => {
    const { reasons } = (await readiness(gateway)).body;
    return reasons.filter((reason) => reason.includes('X-Forwarded-For'));
  };

  expect(await statusOf('203.0.113.7:51234', key.secret)).toBe(404);
  expect(await statusOf('[2001:db8::1]:4711', key.secret)).toBe(404);
  const ofOne = [
    await statusOf('203.0.113.9:1'),
    await statusOf('203.0.113.9:2'),
    await statusOf('203.0.113.9'),
  ];
  expect([...ofOne, await statusOf('203.0.113.8:1')]).toEqual([401, 401, 429, 401]);
  expect(await unread()).toEqual([]);

  const hidden = 'Xq7Zw9Kv';
  expect(await statusOf(`${hidden}:1`, key.secret)).toBe(403);
  expect(await statusOf(`${hidden}:1`, key.secret)).toBe(403);
  const line = await gateway.line(({ msg }) => String(msg).includes('X-Forwarded-For'));
  expect(line).toMatchObject({ level: 40, proxy: '127.0.0.1', form: 'aa0aa0aa:0', requests: 1 });
  expect(await unread()).toEqual([expect.stringContaining('127.0.0.1 writes entries')]);
  expect((await readiness(gateway)).body.status).toBe('degraded');
  const log = gateway.output();
  expect(log).not.toContain(hidden);
  expect(log.match(/X-Forwarded-For/g)).toHaveLength(1);
});
