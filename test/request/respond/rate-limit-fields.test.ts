import { describe, expect, it } from 'vitest';
import { createPolicyText, rateLimitFields } from '../../../gateway/request/respond/rate-limit-fields.ts';
import type { RateLimitState, Window } from '../../../gateway/shared/model.ts';

const nowMs = Date.UTC(2026, 10, 21, 12, 0, 29, 500);
const minute: Window = {
  name: 'minute',
  limit: 60,
  remaining: 12,
  resetMs: Date.UTC(2026, 10, 21, 12, 1),
  windowSeconds: 60,
};
const day: Window = {
  name: 'day',
  limit: 1000,
  remaining: 900,
  resetMs: Date.UTC(2026, 10, 22),
  windowSeconds: 86_400,
};

describe('rateLimitFields', () => {
  it('describes the tightest window in the specification’s three fields, and lists every window in the draft’s two', () => {
    const rateLimit: RateLimitState = { nowMs, windows: [minute, day], inForce: minute };
    expect(rateLimitFields(rateLimit, undefined)).toEqual([
      'X-RateLimit-Limit',
      '60',
      'X-RateLimit-Remaining',
      '12',
      'X-RateLimit-Reset',
      String(Date.UTC(2026, 10, 21, 12, 1) / 1000),
      'RateLimit-Policy',
      '"minute";q=60;w=60, "day";q=1000;w=86400',
      'RateLimit',
      '"minute";r=12;t=31, "day";r=900;t=43171',
    ]);
  });
});

it('a window of a group is a policy with the name of the group, beside the window of the plan with the same name', () => {
  const ofGroup: Window = { ...minute, group: 'reports', limit: 5, remaining: 0 };
  const rateLimit: RateLimitState = { nowMs, windows: [minute, ofGroup], inForce: ofGroup };
  const fields = rateLimitFields(rateLimit, createPolicyText());
  expect(fields.slice(0, 4)).toEqual(['X-RateLimit-Limit', '5', 'X-RateLimit-Remaining', '0']);
  expect(fields.slice(6)).toEqual([
    'RateLimit-Policy',
    '"minute";q=60;w=60, "reports-minute";q=5;w=60',
    'RateLimit',
    '"minute";r=12;t=31, "reports-minute";r=0;t=31',
  ]);
});

it('the cached policy of a key differs between two groups with equal limits', () => {
  const policyText = createPolicyText();
  const policies = ['reports', undefined, 'exports'].map((group) => policyText([{ ...minute, group }]));
  expect(policies).toEqual([
    '"reports-minute";q=60;w=60',
    '"minute";q=60;w=60',
    '"exports-minute";q=60;w=60',
  ]);
});

it('a ban is a separate policy, and the windows have their remaining requests', () => {
  const ban = { untilMs: nowMs + 60_000, retryAtMs: nowMs + 90_000 };
  const fields = rateLimitFields({ nowMs, windows: [minute, day], inForce: minute, ban }, undefined);
  expect(fields.slice(2)).toEqual([
    'X-RateLimit-Remaining',
    '0',
    'X-RateLimit-Reset',
    String(Math.ceil(ban.retryAtMs / 1000)),
    'RateLimit-Policy',
    '"minute";q=60;w=60, "day";q=1000;w=86400, "ban";q=0',
    'RateLimit',
    '"minute";r=12;t=31, "day";r=900;t=43171, "ban";r=0;t=60',
  ]);
});

it('the policy of a key follows a grant and the length of the month, and lists only windows of the response', () => {
  const policyText = createPolicyText();
  const month = (windowSeconds: number): Window => ({ ...day, name: 'month', limit: 5, windowSeconds });
  const address: Window = { ...minute, name: 'address', limit: 30 };
  const granted = { ...minute, limit: 600 };
  const policies = [
    ...[[granted, month(2_592_000)]],
    ...[[minute, month(2_592_000)], [minute, month(2_678_400)], [minute], [address]],
  ].map(policyText);
  expect(policies).toEqual([
    '"minute";q=600;w=60, "month";q=5;w=2592000',
    '"minute";q=60;w=60, "month";q=5;w=2592000',
    '"minute";q=60;w=60, "month";q=5;w=2678400',
    '"minute";q=60;w=60',
    '"address";q=30;w=60',
  ]);
});
