import { expect, it } from 'vitest';
import { measureWebhooks } from './faults/webhooks.ts';

/** Frequent retries, so that the test is short. */
const retries = {
  webhookRetryMs: 50,
  webhookRetryPauseMaxMs: 500,
  webhooksPerSecondMax: 500,
};
/** Another process takes over soon. A claim is longer than an attempt, as in the default bounds. */
const takeover = {
  webhookPollMs: 50,
  webhookSenderMs: 1_000,
  webhookSenderCheckMs: 100,
  webhookClaimMs: 4_000,
  webhookTimeoutMs: 500,
};
const none = { healthy: 0, failing: 0, hanging: 0, moved: 0, endless: 0 };

it('no event is lost when senders are killed, Redis freezes, and receivers fail, hang, redirect or send 1 GB', async () => {
  const tuning = { ...retries, ...takeover };
  const found = await measureWebhooks({ eventsPerRound: 10, kills: 1, frozenMs: 1_500, tuning });
  expect(found).toMatchObject({ events: 41, lost: none, broken: [] });
});

it('as above, with more events, more kills, and the default times of a takeover', {
  tags: 'full',
}, async () => {
  const found = await measureWebhooks({ eventsPerRound: 100, kills: 2, frozenMs: 5_000, tuning: retries });
  expect(found).toMatchObject({ events: 502, lost: none, broken: [] });
});
