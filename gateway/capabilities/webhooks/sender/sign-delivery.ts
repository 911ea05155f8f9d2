import { createHmac } from 'node:crypto';

/**
 * Returns the three header fields of Standard Webhooks for one attempt. Each secret adds a signature, so a receiver may know either secret
 * during a rotation.
 *
 * @param options.secrets in the form `whsec_<base64>`
 * @param options.nowMs the time of the attempt, epoch ms
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function signDelivery({
  id,
  body,
  secrets,
  nowMs,
}: {
  readonly id: string;
  readonly body: string;
  readonly secrets: readonly string[];
  readonly nowMs: number;
}): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
