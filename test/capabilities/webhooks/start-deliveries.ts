import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { startWebhookReceiver } from './webhook-receiver.ts';

/** The secret of each receiver. */
export const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`;

/**
 * Starts a gateway with Redis, a key directory, a token that may write, and a token that may read.
 *
 * @param overrides settings
 */
export async function startWithTokens(
  overrides: Record<string, unknown>,
  bounds: Parameters<typeof tunedBounds>[0] = {},
) {
  const [writer, reader] = [makeToken('write', 'alice'), makeToken('read', 'eve')];
  const logged: Record<string, unknown>[] = [];
  const settings = await settingsOf(
    {
      upstream: { url: 'http://127.0.0.1:1' },
      keys: { directory: true },
      redis: { url: redisUrl(), prefix: freshPrefix() },
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, reader.entry] },
      ...overrides,
    },
    { hook: webhookSecret },
  );
  const gateway = createGateway({
    settings,
    log: {
      logger: pino({ level: 'info' }, { write: (line) => void logged.push(JSON.parse(line)) }),
      access: () => {},
    },
    bounds: tunedBounds({ ...patientStore, ...bounds }),
  });
  const { port } = (await gateway.start()).admin;
  const ask = (path: string, options: Parameters<typeof askAdmin>[2] = {}) =>
    askAdmin(port, `/api/v1${path}`, { token: writer.token, ...options });
  return { gateway, settings, port, ask, logged, writer, reader };
}

/**
 * Starts a gateway with four webhook events. The first receiver accepts all events. The second receiver gets the two events `key.created`,
 * and refuses them until a test changes its status.
 */
export async function startDeliveries() {
  const [accepting, refusing] = await Promise.all([
    startWebhookReceiver(webhookSecret),
    startWebhookReceiver(webhookSecret),
  ]);
  refusing.status = 500;
  const started = await startWithTokens({
    notify: [
      { url: accepting.url, secretFile: 'hook', events: ['key.created', 'key.revoked', 'config.rejected'] },
      { url: refusing.url, secretFile: 'hook', events: ['key.created'] },
    ],
  });
  const { ask, gateway } = started;
  for (const id of ['acme', 'globex']) {
    // The gateway may still be connecting to Redis.
    const issue = () => ask('/keys', { method: 'POST', json: { id, plan: 'free' } });
    await until(`${id} is issued`, async () => (await issue()).status === 201);
  }
  await ask('/keys/acme', { method: 'PATCH', json: { disabled: true } });
  gateway.reportFailedReload('gateway.yaml:1:1: not valid', '0123456789ab');
  await until('each event was attempted', async () => {
    const { counts, problems } = (await ask('/deliveries')).body;
    return counts.delivered === 4 && counts.waiting === 2 && problems[0]?.waiting === 2;
  });
  return {
    ...started,
    accepting,
    refusing,
    async close() {
      await gateway.drain({ graceMs: 0 });
      await Promise.all([accepting.close(), refusing.close()]);
    },
  };
}
