import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { faultsOf } from '../../support/described-replies.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { startRedis } from '../../support/start-redis.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { webhookSecret } from './start-deliveries.ts';
import { startWebhookReceiver } from './webhook-receiver.ts';

/** What operators see of the deliveries while Redis is away. */

const token = makeToken('write', 'ops');
let redis: Awaited<ReturnType<typeof startRedis>>;
let receiver: Awaited<ReturnType<typeof startWebhookReceiver>>;
let gateway: RunningGateway;

const ask = (path: string, options: object = {}) =>
  askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1${path}`, { token: token.token, ...options });

function start() {
  const config = testConfig({
    redis: { url: redis.url, prefix: 'test' },
    upstream: { url: 'http://127.0.0.1:1' },
    keys: { directory: true },
    notify: [{ url: receiver.url, secretFile: 'hook', events: ['key.created', 'key.revoked'] }],
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
  });
  return startGatewayHere(config, {
    files: { hook: webhookSecret },
    tuning: { bounds: { ...patientStore, webhooksCloseTimeoutMs: 100 } },
  });
}

beforeAll(async () => {
  [redis, receiver] = await Promise.all([startRedis(), startWebhookReceiver(webhookSecret)]);
});
afterAll(async () => {
  await receiver.close();
  await redis.stop();
});

describe('a gateway whose Redis goes away', () => {
  let eventId: string;
  beforeAll(async () => {
    gateway = await start();
    for (const id of ['one', 'two']) {
      // The gateway may still be connecting to Redis.
      const issue = () => ask('/keys', { method: 'POST', json: { id, plan: 'free' } });
      await until(`${id} is issued`, async () => (await issue()).status === 201);
    }
    await ask('/keys/one', { method: 'PATCH', json: { disabled: true } });
    await until(
      'the receiver has the events',
      async () => (await ask('/deliveries')).body.counts?.delivered === 3,
    );
    const { events } = (await ask('/deliveries')).body;
    eventId = events[0].id;
    await redis.kill();
    await gateway.line(({ msg }) => msg === 'Redis is away');
  });
  afterAll(() => gateway.stop());

  it('lists the deliveries that it has read, with the figures that it has read last', async () => {
    const reply = await ask('/deliveries');
    expect([reply.status, faultsOf(reply, 'GET', '/deliveries')]).toEqual([200, []]);
    const { counts, events, receivers, missing } = reply.body;
    expect([counts.delivered, events.length, receivers.length]).toEqual([3, 3, 1]);
    expect(Date.parse(missing.sinceAt)).toBeLessThan(Date.now());
  });

  it('filters them, and has no further page', async () => {
    const types = async (query: string) => {
      const { events, next } = (await ask(`/deliveries?${query}`)).body;
      return [...events.map(({ type }: { type: string }) => type), next];
    };
    expect(await types('type=key.revoked')).toEqual(['key.revoked', undefined]);
    expect(await types('state=failed')).toEqual([undefined]);
    expect(await types('limit=2')).toHaveLength(3);
    expect(await types('after=1')).toEqual([undefined]);
  });

  it('refuses by name an event with its body, and to send it again', async () => {
    const message = expect.stringContaining(`the webhook event ${eventId} is only in Redis`);
    for (const [path, options] of [
      [`/deliveries/${eventId}`, {}],
      [`/deliveries/${eventId}/send`, { method: 'POST', json: {} }],
    ] as const) {
      const { status, body } = await ask(path, options);
      expect([status, body.message]).toEqual([503, message]);
    }
  });
});

it('a gateway that starts without Redis refuses the deliveries by name', async () => {
  gateway = await start();
  try {
    await gateway.line(({ msg }) => msg === 'Redis is away');
    const { status, body } = await ask('/deliveries');
    expect([status, body.message]).toEqual([503, expect.stringContaining('has not read the deliveries')]);
  } finally {
    await gateway.stop();
  }
});
