import { randomBytes } from 'node:crypto';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { newEventId } from '../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { signDelivery } from '../../../gateway/capabilities/webhooks/sender/sign-delivery.ts';

const body = JSON.stringify({
  type: 'quota.threshold',
  timestamp: '2026-03-01T00:00:00.000Z',
  data: { key: 'Ümlaut' },
});

function newSecret() {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

it('the package of the standard verifies a signature, and refuses another body, id, time or secret', () => {
  const secret = newSecret();
  const webhook = new Webhook(secret);
  const headers = signDelivery({ id: newEventId(), body, secrets: [secret], nowMs: Date.now() });

  expect(webhook.verify(body, headers)).toEqual(JSON.parse(body));

  const forged = [
    { body: body.replace('key', 'kex'), headers },
    { body, headers: { ...headers, 'webhook-id': newEventId() } },
    { body, headers: { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) } },
  ];
  for (const one of forged)
    expect(() => webhook.verify(one.body, one.headers)).toThrow(WebhookVerificationError);
  expect(() => new Webhook(newSecret()).verify(body, headers)).toThrow(WebhookVerificationError);
});

it('during a rotation, receivers with the old and with the new secret accept the attempt', () => {
  const [old, renewed] = [newSecret(), newSecret()];
  const headers = signDelivery({ id: newEventId(), body, secrets: [old, renewed], nowMs: Date.now() });

  expect(headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/);
  for (const secret of [old, renewed]) {
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
  }
});
