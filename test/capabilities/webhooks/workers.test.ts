import { randomBytes } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { makeCustomKey, startGateway, testConfig } from '../../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { patientGateway } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { startWebhookReceiver } from './webhook-receiver.ts';

it('a gateway with two workers sends one event of a ban and one of a threshold, whichever workers see them', async () => {
  const limited = makeCustomKey(1_000_000, 100);
  const banned = makeCustomKey(1_000_000, 1);
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const [backend, receiver] = await Promise.all([
    startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('[]')) }),
    startWebhookReceiver(secret),
  ]);
  const gateway = await startGateway(
    testConfig({
      upstream: { url: backend.url },
      workers: 2,
      redis: { url: redisUrl(), prefix: freshPrefix() },
      bans: { after: 5, within: '60s', for: '10m', max: '1h' },
      keys: [limited.entry, banned.entry],
      notify: [
        { url: receiver.url, secretFile: 'hook', events: ['key.banned', 'quota.threshold'], at: [100] },
      ],
    }),
    {
      tuning: { bounds: { ...patientGateway, workerReportIntervalMs: 100, eventsMergedWithinMs: 600_000 } },
      files: { hook: secret },
    },
  );
  onTestFinished(async () => {
    await Promise.all([gateway.stop('SIGKILL'), receiver.close(), backend.close()]);
  });
  /** Each request has a connection of its own, so both workers get requests. */
  const send = async (key: { readonly secret: string }, requests: number) => {
    for (let sent = 0; sent < requests; sent++) {
      const headers = { authorization: `Bearer ${key.secret}`, connection: 'close' };
      const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/pets`, { headers });
      await response.arrayBuffer();
    }
  };
  await send(limited, 110);
  await send(banned, 40);
  // A delivery may be repeated, always with the same id.
  const eventsOf = (wanted: string, { entry }: { readonly entry: { readonly id: string } }) =>
    new Map(
      receiver.received
        .filter(({ type, data }) => type === wanted && data.key === entry.id)
        .map(({ id, data }) => [id, data]),
    );
  await until('the receiver gets the threshold', () => eventsOf('quota.threshold', limited).size > 0);
  await until('the receiver gets the ban', () => eventsOf('key.banned', banned).size > 0);
  expect([...eventsOf('quota.threshold', limited).values()]).toMatchObject([
    { window: 'day', percent: 100, used: 100 },
  ]);
  expect(eventsOf('key.banned', banned).size).toBe(1);
});
