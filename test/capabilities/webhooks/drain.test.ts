import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { testConfig } from '../../support/gateway-process.ts';
import { startRedis } from '../../support/start-redis.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { webhookSecret } from './start-deliveries.ts';

const token = makeToken('write', 'ops');

it('a drain ends although a receiver hangs and its delivery may take longer', async () => {
  let arrived = 0;
  const hanging = createServer(() => {
    arrived += 1;
  }).listen(0, '127.0.0.1');
  await once(hanging, 'listening');
  const redis = await startRedis();
  const { port } = hanging.address() as AddressInfo;
  const config = testConfig({
    redis: { url: redis.url, prefix: 'test' },
    upstream: { url: 'http://127.0.0.1:1' },
    keys: { directory: true },
    notify: [{ url: `http://127.0.0.1:${port}/`, secretFile: 'hook', events: ['key.created'] }],
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
  });
  const late = { webhooksCloseTimeoutMs: 600_000, webhookTimeoutMs: 600_000, webhookClaimMs: 700_000 };
  const gateway = await startGatewayHere(config, {
    files: { hook: webhookSecret },
    tuning: { bounds: { ...patientStore, ...late, drainEventsMs: 50 } },
  });
  const adminPort = Number(new URL(gateway.adminUrl).port);
  const issue = () =>
    askAdmin(adminPort, '/api/v1/keys', {
      method: 'POST',
      token: token.token,
      json: { id: 'acme', plan: 'free' },
    });
  await until('the key is issued', async () => (await issue()).status === 201);
  await until('the receiver has the event', () => arrived > 0);
  expect(await gateway.stop()).toBe(0);
  hanging.closeAllConnections();
  hanging.close();
  await redis.stop();
});
