import { describe, expect, it } from 'vitest';
import { keyItemOf } from '../../../gateway/admin/keys/key-item.ts';
import type { SecretView } from '../../../gateway/admin/keys/key-sources.ts';
import { type WhyFacts, why } from '../../../gateway/admin/keys/why.ts';
import type { Grant, Key, KeyStatus, PlanWindow } from '../../../gateway/shared/model.ts';
import type { Period } from '../../../gateway/shared/schema/dates-and-durations.ts';
import { emptyTally, type Tally } from '../../../gateway/usage/tally.ts';

const nowMs = Date.parse('2026-11-22T10:31:20Z');
const minuteEndsMs = Date.parse('2026-11-22T10:32:00Z');
const dayEndsMs = Date.parse('2026-11-23T00:00:00Z');
const key: Key = {
  id: 'acme',
  plan: 'free',
  disabled: false,
  limits: [
    { window: 'minute', max: 60 },
    { window: 'day', max: 1_000 },
  ],
};
const secrets: SecretView[] = [{ digestStart: '01234567', expiresMs: Number.POSITIVE_INFINITY }];

function statusOf(
  minuteUsed: number,
  dayUsed: number,
  ban: Ban | undefined,
  groups: readonly GroupUse[] = [],
): KeyStatus {
  const windowOf = (name: PlanWindow, limit: number, used: number, resetMs: number) => {
    return { name, limit, remaining: Math.max(0, limit - used), resetMs, windowSeconds: 60 };
  };
  const minute = windowOf('minute', 60, minuteUsed, minuteEndsMs);
  const day = windowOf('day', 1_000, dayUsed, dayEndsMs);
  const ofGroups = groups.map(([group, name, used, limit]) => {
    return { ...windowOf(name, limit, used, name === 'day' ? dayEndsMs : minuteEndsMs), group };
  });
  const windows = [minute, day, ...ofGroups];
  const spent = [minute, day].filter(({ remaining }) => remaining === 0);
  return {
    rateLimit: {
      nowMs,
      windows,
      inForce: minute,
      ...(ban && {
        ban: {
          untilMs: ban.untilMs,
          retryAtMs: ban.untilMs,
          ...(ban.reason !== undefined && { byHand: { reason: ban.reason } }),
        },
      }),
    },
    retryAtMs: Math.max(0, ...spent.map(({ resetMs }) => resetMs)),
    used: [minuteUsed, dayUsed, ...groups.map(([, , used]) => used)],
    strikes: 0,
    strikesFromMs: 0,
    banLevel: ban?.level ?? 0,
  };
}

type GroupUse = readonly [group: string, window: 'minute' | 'day', used: number, limit: number];

interface Ban {
  readonly untilMs: number;
  readonly level: number;
  /** Present for a ban by an operator. */
  readonly reason?: string;
}

interface Case {
  readonly key?: Partial<Key>;
  readonly source?: 'file' | 'directory';
  readonly secrets?: readonly SecretView[];
  readonly minuteUsed?: number;
  readonly dayUsed?: number;
  /** The use of the windows of groups. */
  readonly groups?: readonly GroupUse[];
  readonly ban?: Ban;
  /** Minutes, each with its counts and with the number of requests without a valid secret. */
  readonly minutes?: readonly (readonly [string, Partial<Tally>, number?])[];
  /** Operations with their requests of an hour, their 5xx, and the hours before the present one. */
  readonly operations?: readonly (readonly [string, number, number?, number?])[];
  readonly later?: WhyFacts['later'];
  readonly addresses?: number;
  readonly refusedNetworks?: readonly (readonly [network: string, requests: number])[];
  readonly isRecorded?: boolean;
  readonly grant?: Grant;
  /** The periods of the month without a limit a month. */
  readonly withoutLimit?: readonly Period[];
  /** The time of the retry. By default, a retry is possible when the last of the exhausted windows ends. */
  readonly retryAtMs?: number;
}

const monthStartMs = Date.parse('2026-11-01T00:00:00Z');

function sentenceOf(of: Case): string {
  const {
    minuteUsed = 0,
    dayUsed = minuteUsed,
    ban,
    minutes = [],
    operations = [],
    addresses,
    refusedNetworks = [],
    isRecorded = true,
  } = of;
  const facts = {
    source: of.source ?? ('file' as const),
    key: { ...key, ...of.key },
    status: {
      ...statusOf(minuteUsed, dayUsed, ban, of.groups),
      ...(of.grant && { grant: of.grant }),
      ...(of.retryAtMs !== undefined && { retryAtMs: of.retryAtMs }),
    },
    secrets: of.secrets ?? secrets,
    counted: 'request' as const,
    nowMs,
    later: of.later ?? [],
    begun: new Map(
      of.withoutLimit === undefined
        ? []
        : [['month' as const, { windowStartMs: monthStartMs, periods: of.withoutLimit }]],
    ),
  };
  const recent = minutes.length === 0 ? undefined : { offered: 1, admitted: 1, units: 1, lastSeenMs: nowMs };
  const { state } = keyItemOf({ ...facts, recent: isRecorded ? recent : 'off' });
  const recorded: WhyFacts['recorded'] = {
    minutes: minutes.map(([at, tally, unauthorized]) => ({
      atMs: Date.parse(at),
      tally: { ...emptyTally, ...tally },
      ...(unauthorized !== undefined && { unauthorized }),
    })),
    operations: operations.map(([operationId, requests, serverErrors = 0, hoursAgo = 0]) => {
      const atMs = Date.parse('2026-11-22T10:00:00Z') - hoursAgo * 3_600_000;
      return { operationId, requests, atMs, clientErrors: 0, serverErrors };
    }),
    addresses: addresses === undefined ? [] : [{ atMs: nowMs, about: addresses }],
    refusedNetworks: refusedNetworks.map(([network, requests]) => ({ network, requests, lastMs: nowMs })),
    keptDays: 8,
  };
  return why({ ...facts, state, ...(isRecorded && { recorded }) }).sentence;
}

describe('the sentence that explains the responses to a key', () => {
  it.each<[string, Case, string]>([
    [
      'has a limit that was set in its present window',
      {
        minuteUsed: 1,
        withoutLimit: [{ fromMs: monthStartMs, toMs: Date.parse('2026-11-21T09:14:00Z') }],
      },
      'acme (free) may call: it has used 1 of 60 of this minute and 1 of 1,000 of this day. Its limit a month was set at 09:14 on 2026-11-21, and does not count the earlier requests of this month. Its requests are not recorded yet; recording takes up to a minute.',
    ],
    [
      'had no such limit for some time of its present window',
      {
        minuteUsed: 1,
        withoutLimit: [
          { fromMs: Date.parse('2026-11-22T09:14:00Z'), toMs: Date.parse('2026-11-22T09:20:30Z') },
          { fromMs: Date.parse('2026-11-22T10:00:00Z'), toMs: Date.parse('2026-11-22T10:01:00Z') },
        ],
      },
      'acme (free) may call: it has used 1 of 60 of this minute and 1 of 1,000 of this day. Its limit a month did not apply from 09:14:00 UTC until 09:20:30 UTC and from 10:00:00 UTC until 10:01:00 UTC, and does not count the requests of these times. Its requests are not recorded yet; recording takes up to a minute.',
    ],
    [
      'has used up its minute',
      {
        minuteUsed: 60,
        dayUsed: 500,
        minutes: [
          ['2026-11-22T08:12:00Z', { admitted: 4_000, minute: 300 }],
          ['2026-11-22T09:00:00Z', { admitted: 812 }],
          ['2026-11-22T10:31:00Z', { admitted: 60, minute: 12 }],
        ],
        operations: [
          ['listPets', 94],
          ['getPet', 6],
        ],
        addresses: 2,
      },
      'acme (free) has used all 60 requests of this minute and may call again at 10:32:00 UTC. In the last 24 h the minute limit refused 312 of its 5,184 requests, in 2 minutes, first at 08:12. This hour 94 % are listPets; about 2 addresses use it.',
    ],
    [
      'has used up its day',
      {
        minuteUsed: 60,
        dayUsed: 1_000,
        minutes: [['2026-11-22T10:31:00Z', { admitted: 1, day: 1 }]],
        addresses: 1,
      },
      'acme (free) has used all 1,000 requests of this day and may call again at 00:00:00 UTC on 2026-11-23. In the last 24 h the day limit refused 1 of its 2 requests, in 1 minute, first at 10:31. About 1 address uses it.',
    ],
    [
      'has used up a limit of a group',
      {
        minuteUsed: 7,
        groups: [
          ['reports', 'minute', 5, 5],
          ['reports', 'day', 5, 20],
          ['exports', 'minute', 1, 3],
        ],
        isRecorded: false,
      },
      'acme (free) has used all 5 requests of this minute for the group reports, which starts over at 10:32:00 UTC. It may call other operations: it has used 7 of 60 of this minute, 7 of 1,000 of this day and 1 of 3 of this minute for the group exports.',
    ],
    [
      'has used up two groups, one of them for the minute and the day',
      {
        minuteUsed: 7,
        groups: [
          ['reports', 'minute', 5, 5],
          ['reports', 'day', 20, 20],
          ['exports', 'minute', 3, 3],
        ],
        isRecorded: false,
      },
      'acme (free) has used all 20 requests of this day for the group reports, which starts over at 00:00:00 UTC on 2026-11-23 and all 3 requests of this minute for the group exports, which starts over at 10:32:00 UTC. It may call other operations: it has used 7 of 60 of this minute and 7 of 1,000 of this day.',
    ],
    [
      'has used up its minute and the day of a group',
      { minuteUsed: 60, groups: [['reports', 'day', 20, 20]], isRecorded: false },
      'acme (free) has used all 60 requests of this minute and may call again at 10:32:00 UTC. It has also used all 20 requests of this day for the group reports, which starts over at 00:00:00 UTC on 2026-11-23.',
    ],
    [
      'has used a group, and has room in each',
      { minuteUsed: 7, groups: [['reports', 'minute', 4, 5]], isRecorded: false },
      'acme (free) may call: it has used 7 of 60 of this minute, 7 of 1,000 of this day and 4 of 5 of this minute for the group reports.',
    ],
    [
      'has a grant for a group',
      {
        key: {
          limits: [...key.limits, { window: 'day', max: 20, group: 'reports', operations: ['createReport'] }],
        },
        minuteUsed: 7,
        groups: [['reports', 'day', 4, 50]],
        grant: {
          limits: [{ window: 'day', max: 50, group: 'reports' }],
          untilMs: Date.parse('2026-11-22T18:00:00Z'),
        },
        isRecorded: false,
      },
      'acme (free) has a grant until 2026-11-22 18:00 UTC: 50 a day for the group reports in place of 20. It may call: it has used 7 of 60 of this minute, 7 of 1,000 of this day and 4 of 50 of this day for the group reports.',
    ],
    [
      'has a grant',
      {
        minuteUsed: 12,
        dayUsed: 480,
        grant: {
          limits: [
            { window: 'hour', max: 5 },
            { window: 'day', max: 5_000 },
          ],
          untilMs: Date.parse('2026-11-22T18:00:00Z'),
        },
        isRecorded: false,
      },
      'acme (free) has a grant until 2026-11-22 18:00 UTC: 5,000 a day in place of 1,000. It may call: it has used 12 of 60 of this minute and 480 of 1,000 of this day.',
    ],
    [
      'has a grant that has not begun',
      {
        minuteUsed: 12,
        dayUsed: 480,
        grant: {
          limits: [{ window: 'day', max: 5_000 }],
          fromMs: Date.parse('2026-11-22T12:00:00Z'),
          untilMs: Date.parse('2026-11-22T18:00:00Z'),
        },
        isRecorded: false,
      },
      'acme (free) will have a grant from 2026-11-22 12:00 UTC until 2026-11-22 18:00 UTC: 5,000 a day in place of 1,000. It may call: it has used 12 of 60 of this minute and 480 of 1,000 of this day.',
    ],
    [
      'has used up a window, and finds room before it ends since its grant ends',
      {
        minuteUsed: 60,
        grant: {
          limits: [{ window: 'minute', max: 60 }],
          untilMs: Date.parse('2026-11-22T10:31:40Z'),
        },
        retryAtMs: Date.parse('2026-11-22T10:31:40Z'),
        isRecorded: false,
      },
      'acme (free) has a grant until 2026-11-22 10:31:40 UTC: 60 a minute in place of 60. It has used all 60 requests of this minute and may call again at 10:31:40 UTC.',
    ],
    [
      'is banned and has a grant of two windows',
      {
        ban: { untilMs: Date.parse('2026-11-22T10:40:00Z'), level: 1 },
        grant: {
          limits: [
            { window: 'minute', max: 600 },
            { window: 'day', max: 500 },
          ],
          untilMs: Date.parse('2026-11-30T00:00:00Z'),
        },
        isRecorded: false,
      },
      'acme (free) has a grant until 2026-11-29 24:00 UTC: 600 a minute in place of 60 and 500 a day in place of 1,000. It is banned until 10:40:00 UTC, because it kept sending after it had been refused.',
    ],
    [
      'is banned, and has used up its day and the day of a group',
      {
        ban: { untilMs: Date.parse('2026-11-22T10:40:00Z'), level: 1 },
        minuteUsed: 60,
        dayUsed: 1_000,
        groups: [['reports', 'day', 20, 20]],
        isRecorded: false,
      },
      'acme (free) is banned until 10:40:00 UTC, because it kept sending after it had been refused. It has also used all 1,000 requests of this day, which starts over at 00:00:00 UTC on 2026-11-23 and all 20 requests of this day for the group reports, which starts over at 00:00:00 UTC on 2026-11-23.',
    ],
    [
      'is banned for longer than its minute, which it has used up',
      {
        ban: { untilMs: Date.parse('2026-11-22T10:40:00Z'), level: 1 },
        minuteUsed: 60,
        isRecorded: false,
      },
      'acme (free) is banned until 10:40:00 UTC, because it kept sending after it had been refused.',
    ],
    [
      'is banned by an operator and has used up its day',
      {
        ban: { untilMs: Date.parse('2026-11-22T18:00:00Z'), level: 0, reason: 'asked by mail' },
        dayUsed: 1_000,
        isRecorded: false,
      },
      'acme (free) is banned by an operator until 2026-11-22 18:00 UTC: asked by mail. It has also used all 1,000 requests of this day, which starts over at 00:00:00 UTC on 2026-11-23.',
    ],
    [
      'gets another plan, and later limits of this plan',
      {
        minuteUsed: 1,
        later: [
          { fromAt: '2026-12-01T00:00:00.000Z', plan: 'pro', limits: { perMinute: 250, perDay: 20_000 } },
          { fromAt: '2027-01-01T00:00:00.000Z', plan: 'free', limits: { perMinute: 90 } },
        ],
        isRecorded: false,
      },
      'acme (free) may call: it has used 1 of 60 of this minute and 1 of 1,000 of this day. From 2026-12-01 00:00 UTC it will be on the plan pro: 250 a minute, 20,000 a day. From 2027-01-01 00:00 UTC its limits will be 90 a minute.',
    ],
    [
      'gets 5xx in this hour',
      {
        minuteUsed: 1,
        minutes: [['2026-11-22T10:31:00Z', { admitted: 410 }]],
        operations: [
          ['listOrders', 400, 230],
          ['getOrder', 10, 6],
          ['listPets', 1_000, 0, 2],
        ],
      },
      'acme (free) may call: it has used 1 of 60 of this minute and 1 of 1,000 of this day. In the last 24 h none of its 410 requests was refused. In the last 24 h 236 requests got 5xx, 230 of them listOrders: 58 % of its requests since 10:00. This hour 98 % are listOrders.',
    ],
    [
      'got 5xx in earlier hours',
      {
        minuteUsed: 1,
        minutes: [['2026-11-22T10:31:00Z', { admitted: 410 }]],
        operations: [
          ['listOrders', 10, 1, 11],
          ['listOrders', 10, 0, 10],
          ['listOrders', 10, 2, 9],
        ],
      },
      'acme (free) may call: it has used 1 of 60 of this minute and 1 of 1,000 of this day. In the last 24 h none of its 410 requests was refused. In the last 24 h 3 requests got 5xx, all of them listOrders: 10 % of its requests between 23:00 on 2026-11-21 and 02:00.',
    ],
    [
      'is disabled with a grant',
      {
        key: { disabled: true },
        grant: { limits: [{ window: 'day', max: 5_000 }], untilMs: Date.parse('2026-11-22T18:00:00Z') },
        isRecorded: false,
      },
      'acme (free) is disabled in the configuration: each of its requests is refused.',
    ],
    [
      'was refused yesterday',
      { minutes: [['2026-11-21T12:40:00Z', { admitted: 60, minute: 1 }]] },
      'acme (free) may call: it has used 0 of 60 of this minute and 0 of 1,000 of this day. In the last 24 h the minute limit refused 1 of its 61 requests, in 1 minute, first at 12:40 on 2026-11-21.',
    ],
    [
      'has room',
      { minuteUsed: 12, dayUsed: 480, minutes: [['2026-11-22T10:31:00Z', { admitted: 480 }]] },
      'acme (free) may call: it has used 12 of 60 of this minute and 480 of 1,000 of this day. In the last 24 h none of its 480 requests was refused.',
    ],
    [
      'is banned',
      {
        ban: { untilMs: Date.parse('2026-11-22T10:41:00Z'), level: 3 },
        minutes: [['2026-11-22T10:30:00Z', { admitted: 60, minute: 100, banned: 7, day: 30, undecided: 2 }]],
      },
      'acme (free) is banned until 10:41:00 UTC, for the third time in a row, because it kept sending after it had been refused. In the last 24 h the minute limit refused 100, the day limit 30, a ban 7 and an outage of Redis 2 of its 199 requests, in 1 minute, first at 10:30.',
    ],
    [
      'has too many requests in progress',
      {
        minuteUsed: 12,
        dayUsed: 480,
        minutes: [['2026-11-22T10:31:00Z', { admitted: 480, concurrent: 20 }]],
      },
      'acme (free) may call: it has used 12 of 60 of this minute and 480 of 1,000 of this day. In the last 24 h the limit of concurrent requests refused 20 of its 500 requests, in 1 minute, first at 10:31.',
    ],
    [
      'is revoked',
      { source: 'directory', key: { disabled: true } },
      'acme (free) is revoked: each of its requests is refused. In the last 24 h no request with its secrets got 401.',
    ],
    [
      'was revoked while it was in use',
      {
        source: 'directory',
        key: { disabled: true },
        minutes: [
          ['2026-11-22T09:10:00Z', { admitted: 3 }, 1],
          ['2026-11-22T10:02:00Z', {}, 130],
        ],
      },
      'acme (free) is revoked: each of its requests is refused. While it was valid, none of its 3 requests was refused in the last 24 h. In the last 24 h 131 requests used its secrets and got 401, or 429 after too many from their address, last at 10:02.',
    ],
    [
      'was rotated, and one place still has the old secret',
      { minuteUsed: 2, minutes: [['2026-11-22T10:31:00Z', { admitted: 2 }, 1]] },
      'acme (free) may call: it has used 2 of 60 of this minute and 2 of 1,000 of this day. In the last 24 h none of its 2 requests was refused. In the last 24 h 1 request presented an invalid secret of the key, last at 10:31.',
    ],
    [
      'is on a plan that is gone',
      { source: 'directory', key: { limits: [] } },
      'acme (free) has no limits in the configuration: each of its requests is refused. In the last 24 h no request with its secrets got 401.',
    ],
    [
      'is disabled',
      { key: { disabled: true } },
      'acme (free) is disabled in the configuration: each of its requests is refused. In the last 24 h no request with its secrets got 401.',
    ],
    [
      'has only expired secrets',
      { secrets: [{ digestStart: '01234567', expiresMs: Date.parse('2026-10-01T12:00:00Z') }] },
      'The last secret of acme (free) expired on 2026-10-01 at 12:00:00 UTC: each of its requests is refused until it has a new secret. In the last 24 h no request with its secrets got 401.',
    ],
    ['has no secret', { secrets: [] }, 'acme (free) has no secret: no client can use it.'],
    ['was never seen', {}, 'acme (free) has sent no request in the last 8 days.'],
    [
      'is used while nothing is recorded',
      { minuteUsed: 60, isRecorded: false },
      'acme (free) has used all 60 requests of this minute and may call again at 10:32:00 UTC.',
    ],
    [
      'was used from addresses that it does not allow',
      {
        refusedNetworks: [
          ['198.51.100.0/24', 11],
          ['*', 4],
          ['2001:db8:1::/48', 1],
        ],
      },
      'acme (free) has sent no request in the last 8 days. In the last 24 h 16 requests had a valid secret but came from an address that the key does not allow, last at 10:31: 11 from 198.51.100.0/24, 1 from 2001:db8:1::/48 and 4 from other networks.',
    ],
    [
      'was just admitted by another process, whose record has not arrived',
      { minuteUsed: 60 },
      'acme (free) has used all 60 requests of this minute and may call again at 10:32:00 UTC. Its requests are not recorded yet; recording takes up to a minute.',
    ],
    [
      'calls what no operation matches',
      { minuteUsed: 1, minutes: [['2026-11-22T10:31:00Z', { admitted: 1 }]], operations: [['', 1]] },
      'acme (free) may call: it has used 1 of 60 of this minute and 1 of 1,000 of this day. In the last 24 h its one request was not refused. This hour 100 % are for no operation.',
    ],
  ])('covers a key that %s', (_, of, sentence) => {
    expect(sentenceOf(of)).toBe(sentence);
  });
});
