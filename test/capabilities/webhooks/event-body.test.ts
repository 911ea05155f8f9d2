import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { capabilityKinds } from '../../../gateway/capabilities/lists/events.ts';
import { makeEventBody } from '../../../gateway/capabilities/webhooks/events/event-body.ts';
import { eventIdentity } from '../../../gateway/capabilities/webhooks/events/event-identity.ts';
import { isWantedBy } from '../../../gateway/capabilities/webhooks/events/is-wanted-by.ts';
import { keyActions } from '../../../gateway/fleet/changes.ts';
import {
  eventKinds,
  kindOf,
  kindsByType,
  listedKind,
  type Notice,
  webhookTypeOf,
} from '../../../gateway/fleet/kinds/kinds.ts';
import { digestSecret, issueAdminToken, issueSecret } from '../../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { type WebhookEventType, webhookEventTypes } from '../../../gateway/shared/words/event-names.js';
import { capabilityCases } from '../../support/capability-cases.ts';

const secret = issueSecret();
const markers = {
  secret,
  digest: digestSecret(secret),
  token: issueAdminToken(),
  hook: `whsec_${Buffer.alloc(32, 5).toString('base64')}`,
  password: 'correct-horse',
};
/** A text with everything that no receiver may get. */
const leaky = `a ${markers.secret}, its digest ${markers.digest.toUpperCase()}, ${markers.token} and ${markers.hook} at https://me:${markers.password}@example.com/x`;
const customer = 'Customer Ltd';
const atMs = Date.UTC(2026, 10, 25, 12);
const key = { keyId: 'acme', plan: 'free' };
const members = {
  secret: leaky,
  name: customer,
  plan: 'free',
  expiresAt: leaky,
  othersEndAt: leaky,
  created: 3,
};
const change = { by: 'alice', key: 'acme', before: members, after: members, error: leaky };

type CoreKind = Exclude<Notice['kind'], keyof typeof capabilityKinds>;

/** One notice or more of each kind. Every text that does not come from the configuration has the markers. */
const ofCore: { readonly [Kind in CoreKind]: readonly Extract<Notice, { kind: Kind }>[] } = {
  ban: [
    {
      kind: 'ban',
      ...key,
      level: 1,
      untilMs: atMs + 60_000,
      policy: { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 },
    },
  ],
  ban_ended: [{ kind: 'ban_ended', ...key, untilMs: atMs, ended: 'lifted' }],
  key_changed: [
    ...keyActions.map((action) => ({ kind: 'key_changed' as const, ...change, action })),
    { kind: 'key_changed', ...change, action: 'import', key: undefined },
    { kind: 'key_changed', ...change, action: 'secret', after: undefined },
  ],
  store_away: [{ kind: 'store_away', reason: leaky, onFailure: 'local', server: 'redis-1:6379' }],
  store_back: [{ kind: 'store_back', awayMs: 5_000 }],
  store_emptied: [{ kind: 'store_emptied', mark: 'm' }],
  target_unhealthy: [
    { kind: 'target_unhealthy', upstream: 'store', target: '10.0.0.1:80', health: 'down', reason: leaky },
  ],
  target_healthy: [{ kind: 'target_healthy', upstream: 'store', target: '10.0.0.1:80', unhealthyMs: 5_000 }],
  upstream_failing: [{ kind: 'upstream_failing', upstream: 'store', requests: 240, failed: 18 }],
  upstream_well: [
    {
      kind: 'upstream_well',
      upstream: 'store',
      ended: 'quiet',
      sinceMs: atMs,
      failingMs: 5_000,
      worstShare: 0.5,
    },
    { kind: 'upstream_well', upstream: 'store', ended: 'removed', sinceMs: atMs },
  ],
  certificate_expiring: [
    { kind: 'certificate_expiring', listener: 'listen', notice: leaky, notAfterMs: atMs },
  ],
  dead_secret_used: [
    { kind: 'dead_secret_used', ...key, digestStart: '9f86d081', sinceMs: atMs, day: 20_000 },
  ],
  recording_paused: [{ kind: 'recording_paused', reason: leaky }],
  recording_resumed: [{ kind: 'recording_resumed' }],
  worker_ended: [{ kind: 'worker_ended', worker: 1, pid: 7, reason: leaky, pauseMs: 100 }],
  reload: [{ kind: 'reload', before: 'aaaaaaaaaaaa', after: 'bbbbbbbbbbbb', edits: [leaky, leaky] }],
  reload_failed: [
    {
      kind: 'reload_failed',
      before: 'aaaaaaaaaaaa',
      after: undefined,
      error: `keys.yaml:7:3: ${leaky}\n  7 | ${customer}\n    | ^`,
    },
  ],
  quota_threshold: [
    {
      kind: 'quota_threshold',
      ...key,
      window: 'month',
      index: 682,
      percent: 80,
      used: 800,
      limit: 1_000,
      resetMs: 0,
      endsAtMs: atMs + 60_000,
      source: 'shared',
    },
  ],
  secret_leaked: [
    {
      kind: 'secret_leaked',
      reportedAt: '2026-11-25T12:00:00.000Z',
      ...key,
      digestStart: markers.digest,
      source: 'github',
      url: `https://me:${markers.password}@example.com/${markers.secret}`,
      type: leaky,
      ended: true,
      descendants: [markers.digest],
    },
  ],
  key_expiring: [
    {
      kind: 'key_expiring',
      ...key,
      digestStart: markers.digest.slice(0, 8),
      hasOther: false,
      expiresMs: atMs + 86_400_000,
      days: 1,
    },
  ],
  operation_sunset: [
    {
      kind: 'operation_sunset',
      operation: 'getPet',
      method: 'GET',
      path: '/pets/{petId}',
      sunsetMs: atMs + 86_400_000,
      days: 1,
      successor: '/animals',
      afterSunset: 'gone',
      called: { days: 7, callers: [{ keyId: 'acme', requests: 5 }], more: 0 },
    },
  ],
  plan_changed: [{ kind: 'plan_changed', plan: 'free', cause: 'reload', edits: [leaky], version: 'b' }],
};
const ofCapabilities = (await capabilityCases()).flatMap(({ notices }) => notices?.({ leaky, atMs }) ?? []);
const notices: Readonly<Record<string, readonly Notice[]>> = {
  ...ofCore,
  ...Object.fromEntries(Map.groupBy(ofCapabilities, ({ kind }) => kind)),
};
const all: readonly Notice[] = Object.values(notices).flat();
const bodyOf = (notice: Notice) => makeEventBody(notice, atMs, defaultBounds);

it('no event has a secret, a complete digest, a password or the name of a customer', () => {
  for (const notice of all) {
    const text = JSON.stringify(bodyOf(notice) ?? {}).toLowerCase();
    const found = Object.entries({ ...markers, customer }).filter(([, marker]) =>
      text.includes(marker.toLowerCase()),
    );
    expect({ kind: notice.kind, found }).toEqual({ kind: notice.kind, found: [] });
  }
});

it.each(Object.entries(notices))('each notice of the kind %s has a sentence', (kind, ofKind) => {
  expect(ofKind).not.toEqual([]);
  for (const notice of ofKind) {
    const text = kindOf(notice).text(notice, atMs);
    expect(text, kind).toMatch(/^[A-Za-z].* .{10}/);
    expect(text, kind).not.toMatch(/undefined|NaN|\[object/);
  }
});

it.each(eventKinds)('a summary of many events of the kind %s has words', (kind) => {
  expect(listedKind(kind).list.many).toMatch(/^[a-zA-Z ]{7,}$/);
});

it('each body matches the schema of its type', () => {
  for (const notice of all) {
    const body = bodyOf(notice);
    if (body === undefined) continue;
    const schema = kindsByType.get(body.type)?.webhook?.data(z);
    const parsed = schema?.safeParse(JSON.parse(JSON.stringify(body.data)));
    expect([body.type, parsed?.error?.issues]).toEqual([body.type, undefined]);
  }
});

it('each type of event comes from a notice, with its time, its ids and a sentence', () => {
  const bodies = all.flatMap((notice) => bodyOf(notice) ?? []);
  expect([...new Set(bodies.map(({ type }) => type))].toSorted()).toEqual(webhookEventTypes.toSorted());
  for (const body of bodies) {
    expect(body.timestamp).toBe('2026-11-25T12:00:00.000Z');
    expect(Object.keys(body)).toEqual(['type', 'timestamp', 'data']);
    expect(body.data.text).toMatch(/\w+ .{10}/);
    if (/^(key|quota|secret)\./.test(body.type) && body.data.change !== 'import')
      expect(body.data.key).toBe('acme');
  }
});

describe('a change of a key', () => {
  const typeOf = (notice: Partial<Extract<Notice, { kind: 'key_changed' }>>) =>
    webhookTypeOf({ kind: 'key_changed', action: 'update', by: 'alice', ...notice });

  it.each<[string, Parameters<typeof typeOf>[0], WebhookEventType | undefined]>([
    ['a created key', { action: 'create' }, 'key.created'],
    ['an import', { action: 'import', after: { created: 3 } }, 'key.created'],
    ['an import that created nothing', { action: 'import', after: { created: 0 } }, undefined],
    ['a revoked key', { action: 'revoke' }, 'key.revoked'],
    ['a deleted key', { action: 'delete' }, 'key.revoked'],
    ['a rotated secret', { action: 'rotate' }, 'key.rotated'],
    ['a further secret', { action: 'secret', after: { secret: '01234567' } }, 'key.rotated'],
    ['a removed secret', { action: 'secret', before: { secret: '01234567' } }, 'key.rotated'],
    ['a restored key', { action: 'restore' }, undefined],
    ['an edit', { action: 'update' }, undefined],
    ['a lifted ban, which has its own event', { action: 'unban' }, undefined],
    ['a grant', { action: 'grant' }, undefined],
  ])('%s', (_what, notice, type) => {
    expect(typeOf(notice)).toBe(type);
  });

  it('says which secret is new, and until when the older secrets are valid', () => {
    const after = { secret: '01234567', othersEndAt: '2026-11-26T00:00:00.000Z' };
    expect(
      bodyOf({ kind: 'key_changed', action: 'rotate', by: 'alice', key: 'acme', after })?.data,
    ).toMatchObject({
      key: 'acme',
      change: 'rotate',
      by: 'alice',
      digestStart: '01234567',
      oldEndsAt: '2026-11-26T00:00:00.000Z',
    });
  });

  it('without a reply of the store is unconfirmed', () => {
    const failed = { action: 'revoke', by: 'alice', key: 'acme', error: 'no reply' } as const;
    expect(bodyOf({ kind: 'key_changed', ...failed })?.data).toMatchObject({
      key: 'acme',
      unconfirmed: true,
    });
  });
});

describe('an event of at most 20 kB', () => {
  const sizeOf = (notice: Notice) => Buffer.byteLength(JSON.stringify(bodyOf(notice)));

  it('has the first callers, and the number of the others', () => {
    const callers = Array.from({ length: 10_000 }, (_, n) => ({
      keyId: `key-${n}-${'x'.repeat(100)}`,
      requests: 1,
    }));
    const [sunset] = ofCore.operation_sunset;
    if (sunset === undefined) throw new Error('no notice');
    const notice = { ...sunset, called: { days: 7, callers, more: 5_000 } };
    const body = bodyOf(notice);
    expect(sizeOf(notice)).toBeLessThanOrEqual(20_000);
    const listed = body?.data.callers as readonly unknown[];
    expect(listed.length).toBeGreaterThan(80);
    expect(listed[0]).toEqual({ key: callers[0]?.keyId, requests: 1 });
    expect(listed.length + (body?.data.notListed ?? 0)).toBe(15_000);
  });

  it.each([
    ['a long reason', { kind: 'recording_paused', reason: '€'.repeat(1_000_000) }],
    [
      'control characters, which JSON writes with six characters',
      { kind: 'recording_paused', reason: '\u0001'.repeat(50_000) },
    ],
    [
      'many problems',
      { kind: 'reload_failed', before: 'a', after: 'b', error: `${'\u0001'.repeat(2_000)}\n`.repeat(200) },
    ],
    [
      'a long path',
      {
        kind: 'secret_leaked',
        reportedAt: '2026-11-25T12:00:00.000Z',
        ...key,
        digestStart: '01234567',
        source: 's',
        type: undefined,
        ended: false,
        descendants: [],
        url: `https://e/${'\u0001'.repeat(90_000)}`,
      },
    ],
  ] as const)('has a shorter text in place of %s', (_what, notice) => {
    expect(sizeOf(notice)).toBeLessThanOrEqual(20_000);
  });
});

it('a receiver gets the types that it states, and of the thresholds only its percentages', () => {
  const [threshold] = ofCore.quota_threshold;
  if (threshold === undefined) throw new Error('no notice');
  const wants = (events: readonly WebhookEventType[], at: readonly number[]) =>
    isWantedBy({ events, at }, threshold);
  expect(wants(['quota.threshold'], [80])).toBe(true);
  expect(wants(['quota.threshold'], [90])).toBe(false);
  expect(wants(['key.banned'], [80])).toBe(false);
  expect(isWantedBy({ events: [...webhookEventTypes], at: [] }, { kind: 'recording_resumed' })).toBe(false);
});

it.each([
  [
    { keys: ['other', 'acme'] },
    { ban: true, plan_changed: false, operation_sunset: false, store_away: false },
  ],
  [{ keys: ['other'] }, { ban: false }],
  [{ plans: ['free'] }, { ban: true, plan_changed: true, operation_sunset: false, reload: false }],
  [{ plans: ['pro'] }, { ban: false, plan_changed: false }],
  [{ keys: ['acme'], plans: ['pro'] }, { ban: false }],
  [
    { keys: ['acme'], plans: ['free'] },
    { ban: true, key_expiring: true },
  ],
  [{ operations: ['getPet'] }, { operation_sunset: true, ban: false, target_unhealthy: false }],
] as const)('a receiver with the filter %j gets only matching events', (filter, expected) => {
  const all = { events: webhookEventTypes, at: [80], ...filter };
  for (const [kind, isWanted] of Object.entries(expected)) {
    const [notice] = notices[kind] ?? [];
    if (notice === undefined) throw new Error('no notice');
    expect([kind, isWantedBy(all, notice)]).toEqual([kind, isWanted]);
  }
});

it('the plan of a changed key is the plan that the notice states, or else the present plan', () => {
  const revoked = { kind: 'key_changed', action: 'revoke', by: 'alice', key: 'acme' } as const;
  const wants = (notice: Notice, planOfKey?: string) =>
    isWantedBy({ events: ['key.revoked'], at: [], plans: ['free'] }, notice, planOfKey);
  expect([wants(revoked), wants(revoked, 'free'), wants(revoked, 'pro')]).toEqual([false, true, false]);
  expect([wants({ ...revoked, plan: 'free' }, 'pro'), wants({ ...revoked, plan: 'pro' }, 'free')]).toEqual([
    true,
    false,
  ]);
});

it('the check of filters knows what each event states', () => {
  for (const notice of all) {
    const type = webhookTypeOf(notice);
    // An import has no key, but other events of its type have one.
    if (type === undefined || type === 'key.created') continue;
    const filters = kindsByType.get(type)?.filters;
    const { key, plan, operation } = kindOf(notice).about(notice);
    if (key !== undefined) expect([type, filters]).toEqual([type, ['keys', 'plans']]);
    else if (operation !== undefined) expect([type, filters]).toEqual([type, ['operations']]);
    else if (plan !== undefined) expect([type, filters]).toEqual([type, ['plans']]);
    else expect([type, filters]).toEqual([type, []]);
  }
});

it('the identity of a notice has its kind, so that notices of two kinds are never merged', () => {
  for (const notice of all) {
    expect(eventIdentity(notice, atMs, defaultBounds).what[0]).toBe(notice.kind);
    expect(kindOf(notice).subject(notice)).not.toBe('');
  }
});

it('a threshold of a group names the group, and is another event than the threshold of the plan', () => {
  const [ofPlan] = ofCore.quota_threshold;
  if (ofPlan === undefined) throw new Error('there is a notice of each kind');
  const ofGroup = { ...ofPlan, window: 'day' as const, group: 'reports', used: 16, limit: 20 };
  expect(bodyOf(ofGroup)?.data).toMatchObject({
    window: 'day',
    group: 'reports',
    text: 'acme (free) has used 80 % of its limit of the group reports for the day: 16 of 20.',
  });
  expect(bodyOf(ofPlan)?.data.text).toBe(
    'acme (free) has used 80 % of its limit for the month: 800 of 1,000.',
  );
  expect(JSON.stringify(bodyOf(ofPlan))).not.toContain('group');
  const identities = [undefined, 'reports', 'exports'].map(
    (group) => eventIdentity({ ...ofGroup, group }, atMs, defaultBounds).what,
  );
  expect(new Set(identities.map(String)).size).toBe(3);
});
