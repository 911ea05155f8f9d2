import { expect, it } from 'vitest';
import { costRefusal, limitRefusal } from '../../../gateway/request/respond/limit-refusal.ts';
import type { RateLimitState, Window } from '../../../gateway/shared/model.ts';

const nowMs = Date.UTC(2026, 10, 21, 12, 0, 48, 500);
const windowOf = (name: Window['name'], limit: number): Window => ({
  name,
  limit,
  remaining: 0,
  resetMs: Date.UTC(2026, 10, 21, 12, 1),
  windowSeconds: 60,
});
const standingOf = (inForce: Window): RateLimitState => ({ nowMs, windows: [inForce], inForce });

const terms = { counted: 'request', showsBanReason: false } as const;

it.each([
  ['minute', 60, 'All 60 requests of this minute are used. Retry in 12 s.'],
  ['day', 1, 'The one request of this day is used. Retry in 12 s.'],
] as const)(
  'the refusal by a used-up %s limit of %i states the limit and when to come back',
  (name, limit, message) => {
    const rateLimit = standingOf(windowOf(name, limit));
    const retryAtMs = rateLimit.inForce.resetMs;
    const decision = { kind: 'refused', units: 1, rateLimit, source: 'shared', retryAtMs } as const;
    expect(limitRefusal(decision, terms)).toEqual({
      code: 'rate_limited',
      message,
      fields: ['Retry-After', '12'],
    });
  },
);

it.each([
  [1, 0, 0, 'All 60 units of this minute are used. Retry in 12 s.'],
  [5, 3, 900, "This request costs 5 units; 3 of this minute's 60 are left. Retry in 12 s."],
  [5, 1, 4, "This request costs 5 units; 4 of this day's 1000 are left. Retry in 43152 s."],
])(
  'the refusal of a request names its cost of %i units and the window that it waits for',
  (units, minute, day, message) => {
    const windows = [
      { ...windowOf('minute', 60), remaining: minute },
      { ...windowOf('day', 1000), remaining: day, resetMs: Date.UTC(2026, 10, 22) },
    ];
    const full = windows.filter(({ remaining }) => remaining < units);
    const retryAtMs = units === 1 ? windowOf('minute', 60).resetMs : (full.at(-1)?.resetMs ?? 0);
    const rateLimit = { nowMs, windows, inForce: windows[0] as Window };
    expect(
      limitRefusal(
        { kind: 'refused', units, rateLimit, source: 'shared', retryAtMs },
        { ...terms, counted: 'unit' },
      ).message,
    ).toBe(message);
  },
);

it.each([
  [1, 5, 0, 'All 5 requests of this minute for the group reports are used. Retry in 12 s.'],
  [1, 1, 0, 'The one request of this minute for the group reports is used. Retry in 12 s.'],
  [
    3,
    5,
    2,
    "This request costs 3 units; 2 of this minute's 5 for the group reports are left. Retry in 12 s.",
  ],
])(
  'the refusal by a limit of a group names the group, at a cost of %i',
  (units, limit, remaining, message) => {
    const ofGroup = { ...windowOf('minute', limit), group: 'reports', remaining };
    const windows = [{ ...windowOf('minute', 60), remaining: 50 }, ofGroup];
    const rateLimit = { nowMs, windows, inForce: ofGroup };
    const retryAtMs = ofGroup.resetMs;
    expect(
      limitRefusal({ kind: 'refused', units, rateLimit, source: 'shared', retryAtMs }, terms),
    ).toMatchObject({ message, fields: ['Retry-After', '12'] });
  },
);

it('a cost above a limit of a group is refused with the smallest limit, and with the group', () => {
  const inForce = windowOf('minute', 60);
  const windows = [
    inForce,
    { ...windowOf('day', 5), group: 'reports' },
    { ...windowOf('day', 7), group: 'x' },
  ];
  expect(costRefusal(20, { nowMs, windows, inForce }).message).toBe(
    'This request costs 20 units, and the API key may use at most 5 in a day for the group reports.',
  );
});

it('the refusal of a banned request has the reason, the end of the ban, and the time of the next admission', () => {
  const rateLimit = {
    ...standingOf(windowOf('minute', 60)),
    ban: { untilMs: nowMs + 20_000, retryAtMs: nowMs + 20_000 },
  };
  const retryAtMs = nowMs + 71_500;
  const decision = { kind: 'banned', units: 1, rateLimit, source: 'shared', retryAtMs } as const;
  expect(limitRefusal(decision, terms)).toEqual({
    code: 'key_banned',
    message:
      'The API key is banned until 2026-11-21T12:01:09.000Z, because it kept sending after 429. Retry in 72 s.',
    fields: ['Retry-After', '72'],
  });
});

it.each([
  ['asked by mail', true, ' by the operator: asked by mail'],
  ['asked by mail', false, ' by the operator'],
  [undefined, true, ' by the operator'],
])('the refusal during a ban by hand with the reason %j, shown: %s', (reason, showsBanReason, because) => {
  const rateLimit = {
    ...standingOf(windowOf('minute', 60)),
    ban: { untilMs: nowMs + 20_000, retryAtMs: nowMs + 20_000, byHand: { reason } },
  };
  const decision = {
    kind: 'banned',
    units: 1,
    rateLimit,
    source: 'shared',
    retryAtMs: nowMs + 20_000,
  } as const;
  const until = new Date(Math.ceil((nowMs + 20_000) / 1_000) * 1_000).toISOString();
  expect(limitRefusal(decision, { ...terms, showsBanReason }).message).toBe(
    `The API key is banned until ${until}${because}. Retry in 20 s.`,
  );
});
