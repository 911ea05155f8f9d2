import type { WebhookEventType } from '../shared/model.ts';
import type { Notice } from './notices.ts';

/**
 * An example notice for each type of event. `tollgate notify test` sends these examples, and the documentation shows them. No example has
 * data of a real key.
 *
 * @param nowMs the time of the events, epoch ms
 */
export function exampleNotices(nowMs: number): Readonly<Record<WebhookEventType, Notice>> {
  const minuteMs = 60_000;
  const dayMs = 86_400_000;
  const month = new Date(nowMs);
  const key = { keyId: 'example', plan: 'free' } as const;
  const digestStart = '9f86d081';
  const store = { reason: 'connect ECONNREFUSED 127.0.0.1:6379', onFailure: 'local' } as const;
  const target = { upstream: 'default', target: '127.0.0.1:3000' };
  const change = { kind: 'key_changed', key: key.keyId, by: 'alice' } as const;
  const versions = { before: '1c8f3a5b7d90', after: '7e2d4f6a8b01' };
  return {
    'quota.threshold': {
      kind: 'quota_threshold',
      ...key,
      window: 'month',
      index: (month.getUTCFullYear() - 1970) * 12 + month.getUTCMonth(),
      percent: 80,
      used: 8_000,
      limit: 10_000,
      resetMs: 0,
      endsAtMs: Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1),
      source: 'shared',
    },
    'key.banned': {
      kind: 'ban',
      ...key,
      level: 1,
      untilMs: nowMs + 10 * minuteMs,
      policy: { after: 100, withinMs: minuteMs, forMs: 10 * minuteMs, maxMs: dayMs },
    },
    'key.unbanned': { kind: 'ban_ended', ...key, untilMs: nowMs, ended: 'expired' },
    'key.created': { ...change, action: 'create', after: { plan: key.plan } },
    'key.revoked': { ...change, action: 'revoke', after: { disabled: true } },
    'key.rotated': {
      ...change,
      action: 'rotate',
      after: { secret: digestStart, othersEndAt: new Date(nowMs + dayMs).toISOString() },
    },
    'key.expiring': {
      kind: 'key_expiring',
      ...key,
      digestStart,
      hasOther: false,
      expiresMs: nowMs + 14 * dayMs,
      days: 14,
    },
    'secret.leaked': {
      kind: 'secret_leaked',
      ...key,
      digestStart,
      source: 'github',
      url: 'https://github.com/example/repository/blob/main/.env',
      type: 'tollgate_api_key',
      ended: true,
      descendants: ['60303ae2'],
      reportedAt: new Date(nowMs).toISOString(),
    },
    'operation.sunset': {
      kind: 'operation_sunset',
      operation: 'listPets',
      method: 'GET',
      path: '/v1/pets',
      sunsetMs: nowMs + 7 * dayMs,
      afterSunset: 'gone',
      days: 7,
      successor: '/v1/animals',
      called: { days: 7, callers: [{ keyId: key.keyId, requests: 1_204 }], more: 0 },
    },
    'target.down': { kind: 'target_unhealthy', ...target, health: 'down', reason: 'connection refused' },
    'target.up': { kind: 'target_healthy', ...target, unhealthyMs: 42_000 },
    'store.away': { kind: 'store_away', ...store },
    'store.back': { kind: 'store_back', awayMs: 42_000 },
    'config.rejected': {
      kind: 'reload_failed',
      ...versions,
      error: 'tollgate.yaml:12:5: `plans.free.perMinute` must be a whole number from 1 to 9007199254740991',
    },
    'config.reloaded': { kind: 'reload', ...versions, edits: ['free 60 → 50 a minute'] },
    'plan.changed': {
      kind: 'plan_changed',
      plan: key.plan,
      cause: 'reload',
      edits: ['60 → 50 a minute'],
      version: versions.after,
    },
    'plan.reverted': {
      kind: 'plan_reverted',
      plan: key.plan,
      sinceMs: nowMs,
      requests: 4_100,
      refused: 132,
      refusedShareMax: 0.03,
      edit: { perMinute: 40 },
      inForce: { perMinute: 60 },
    },
    'usage.paused': { kind: 'recording_paused', reason: 'Redis is full' },
  };
}
