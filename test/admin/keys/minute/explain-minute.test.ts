import { describe, expect, it } from 'vitest';
import { explainMinute, type MinuteFacts } from '../../../../gateway/admin/keys/minute/explain-minute.ts';
import type { LimitsByField } from '../../../../gateway/keys/limits/limit-fields.ts';
import { emptyTally, type Tally } from '../../../../gateway/usage/tally.ts';

/** Times of the day of the minute, which is yesterday. */
const at = (time: string) => Date.parse(`2026-11-24T${time}Z`);
const atMs = at('14:03:00');

const nothing: MinuteFacts = {
  key: { id: 'acme' },
  atMs,
  nowMs: Date.parse('2026-11-25T09:00:00Z'),
  counted: 'request',
  minutesOfHour: [],
  lacksRequests: false,
  limits: [{ fromAt: '2026-11-23T14:03:00.000Z', limits: { perMinute: 60, perDay: 1_000 } }],
  bans: [],
  outages: [],
  countsAlone: true,
  secrets: [],
  secretsOfDay: new Map(),
  disabledBecause: undefined,
  networksOfHour: [],
  operationsOfHour: [],
  refusalsOfHour: [],
  failed: [],
  trial: undefined,
};

const minute = (tally: Partial<Tally>, unauthorized?: number, ofMs = atMs) => ({
  atMs: ofMs,
  tally: { ...emptyTally, ...tally },
  ...(unauthorized !== undefined && { unauthorized }),
});

const limitsFrom = (...steps: [time: string, limits: LimitsByField][]) =>
  steps.map(([time, limits]) => ({ fromAt: new Date(at(time)).toISOString(), limits }));

const secret = (digestStart: string, expiresMs = Number.POSITIVE_INFINITY) => ({ digestStart, expiresMs });
const used = (unauthorized: number) => ({ lastMs: 0, unauthorized, lastUnauthorizedMs: 0 });
const leak = { atMs: at('13:00:00'), by: 'github', ended: true };

describe('the sentence about a refusal', () => {
  it.each<[string, Partial<MinuteFacts>, string]>([
    [
      'names the limit that applied',
      { minutesOfHour: [minute({ admitted: 60, minute: 5 })] },
      '5 requests were refused with 429 by the limit of 60 a minute.',
    ],
    [
      'counts one request',
      { minutesOfHour: [minute({ minute: 1 })] },
      '1 request was refused with 429 by the limit of 60 a minute.',
    ],
    [
      'counts units if operations have costs',
      { minutesOfHour: [minute({ minute: 5 })], counted: 'unit' },
      '5 requests were refused with 429 by the limit of 60 units a minute.',
    ],
    [
      'says when the count of a long window started over',
      { minutesOfHour: [minute({ day: 5 })] },
      '5 requests were refused with 429 by the limit of 1,000 a day. Its count started over at 00:00:00 UTC on 2026-11-25.',
    ],
    [
      'says when the count of a long window starts over',
      { minutesOfHour: [minute({ day: 5 })], nowMs: at('14:10:00') },
      '5 requests were refused with 429 by the limit of 1,000 a day. Its count starts over at 00:00:00 UTC on 2026-11-25.',
    ],
    [
      'says since when an edited limit applied',
      {
        minutesOfHour: [minute({ minute: 5 })],
        limits: limitsFrom(['00:00:00', { perMinute: 60 }], ['13:58:10', { perMinute: 30 }]),
      },
      '5 requests were refused with 429 by the limit of 30 a minute, in force since 13:58:10 UTC.',
    ],
    [
      'does not say that a limit changed when another one did',
      {
        minutesOfHour: [minute({ minute: 5 })],
        limits: limitsFrom(['00:00:00', { perMinute: 60 }], ['14:03:10', { perMinute: 60, perDay: 10 }]),
      },
      '5 requests were refused with 429 by the limit of 60 a minute.',
    ],
    [
      'names both values if the limit changed in the minute',
      {
        minutesOfHour: [minute({ minute: 5 })],
        limits: limitsFrom(['00:00:00', { perMinute: 60 }], ['14:03:20', { perMinute: 30 }]),
      },
      '5 requests were refused with 429 by the limit a minute. It was 60 at the beginning of the minute. At 14:03:20 UTC the limit became 30.',
    ],
    [
      'says that the limit ended in the minute',
      {
        minutesOfHour: [minute({ minute: 5 })],
        limits: limitsFrom(['00:00:00', { perMinute: 60 }], ['14:03:20', { perDay: 30 }]),
      },
      '5 requests were refused with 429 by the limit of 60 a minute. At 14:03:20 UTC the limit ended.',
    ],
    [
      'ignores changes after the minute',
      {
        minutesOfHour: [minute({ minute: 5 })],
        limits: limitsFrom(['00:00:00', { perMinute: 60 }], ['14:04:00', { perMinute: 30 }]),
      },
      '5 requests were refused with 429 by the limit of 60 a minute.',
    ],
    [
      'does not guess a limit that is not recorded',
      { minutesOfHour: [minute({ hour: 5 })] },
      '5 requests were refused with 429 by the hour limit. Its value at that time is not recorded. Its count started over at 15:00:00 UTC.',
    ],
    [
      'names the group',
      {
        minutesOfHour: [
          minute({
            group: 5,
            groups: new Map([['reports', { offered: 9, admitted: 4, units: 4, refused: { minute: 5 } }]]),
          }),
        ],
        limits: limitsFrom(['00:00:00', { perMinute: 60, groups: { reports: { perMinute: 4 } } }]),
      },
      '5 requests were refused with 429 by the limit of 4 a minute for the group reports.',
    ],
    [
      'does not guess the group',
      { minutesOfHour: [minute({ group: 5 })] },
      '5 requests were refused with 429 by a limit of a group of operations. The key has no group now that has recorded these requests.',
    ],
    [
      'states the limit of concurrent requests as the present one',
      { minutesOfHour: [minute({ concurrent: 5 })], key: { id: 'acme', concurrent: 3 } },
      '5 requests were refused with 429 by the limit of concurrent requests. It is 3 now; earlier values are not recorded.',
    ],
    [
      'names the beginning and the end of a ban',
      {
        minutesOfHour: [minute({ banned: 5 })],
        bans: [{ fromMs: at('14:02:10'), toMs: at('14:07:10'), isLifted: false }],
      },
      '5 requests were refused with 429 by a ban from 14:02:10 UTC until 14:07:10 UTC. A key is banned when it keeps sending after refusals.',
    ],
    [
      'says that a ban was lifted, and names the next ban of the minute',
      {
        minutesOfHour: [minute({ banned: 5 })],
        nowMs: at('14:05:00'),
        bans: [
          { fromMs: at('14:02:10'), toMs: at('14:03:10'), isLifted: true },
          { fromMs: at('14:03:40'), toMs: at('14:08:40'), isLifted: false },
        ],
      },
      '5 requests were refused with 429 by a ban from 14:02:10 UTC, which an operator lifted at 14:03:10 UTC, and by a ban from 14:03:40 UTC, which ends at 14:08:40 UTC. A key is banned when it keeps sending after refusals.',
    ],
    [
      'does not guess the times of a ban that is not listed',
      { minutesOfHour: [minute({ banned: 5 })] },
      '5 requests were refused with 429 by a ban. The list of events does not have its beginning and its end.',
    ],
    [
      'names an outage of Redis',
      {
        minutesOfHour: [minute({ undecided: 5 })],
        outages: [{ fromMs: at('14:02:50'), toMs: at('14:04:00') }],
      },
      '5 requests were refused with 503, because Redis was away from 14:02:50 UTC until 14:04:00 UTC and `redis.onFailure` was `refuse`.',
    ],
    [
      'names the expired and the leaked secrets that had such requests on the day',
      {
        minutesOfHour: [minute({}, 5)],
        secrets: [
          secret('aaaaaaaa', at('12:00:00')),
          { ...secret('bbbbbbbb', at('13:00:00')), leak },
          secret('cccccccc', at('12:00:00')),
        ],
        secretsOfDay: new Map([
          ['aaaaaaaa', used(3)],
          ['bbbbbbbb', used(2)],
          ['cccccccc', used(0)],
        ]),
      },
      '5 requests were refused with 401, because their secret was not valid, or with 429 if their address had sent too many such requests. Such requests of this day presented aaaaaaaa…, which expired at 12:00:00 UTC; and bbbbbbbb…, which ended, because it had leaked, at 13:00:00 UTC.',
    ],
    [
      'does not call a secret expired that expired after the minute',
      {
        minutesOfHour: [minute({}, 5)],
        secrets: [secret('aaaaaaaa', at('14:04:00'))],
        secretsOfDay: new Map([['aaaaaaaa', used(5)]]),
        disabledBecause: 'The key was revoked at 14:00:00 UTC',
      },
      '5 requests were refused with 401, because their secret was not valid, or with 429 if their address had sent too many such requests. The key was revoked at 14:00:00 UTC. Such requests of this day presented aaaaaaaa….',
    ],
    [
      'names the networks of addresses that the key does not allow, by hour',
      {
        networksOfHour: [
          { network: '203.0.113.0/24', requests: 10, lastMs: 0 },
          { network: '*', requests: 2, lastMs: 0 },
        ],
      },
      '12 requests with a valid secret were refused in the hour from 14:00:00 UTC on 2026-11-24 with 403, because the key did not allow the address of the client: 10 from 203.0.113.0/24 and 2 from other networks. They are recorded by hour only.',
    ],
    [
      'counts other 4xx of the hour, without the refusals of limits in any minute of the hour',
      {
        minutesOfHour: [minute({ admitted: 9, minute: 5 }), minute({ banned: 2 }, undefined, at('14:50:00'))],
        operationsOfHour: [
          { operationId: 'getPet', clientErrors: 7 },
          { operationId: 'deletePet', clientErrors: 3, remark: 'the key may not call it now' },
          { operationId: '', clientErrors: 1 },
          { operationId: 'listPets', clientErrors: 0 },
        ],
      },
      '4 admitted requests got another 4xx in the hour from 14:00:00 UTC on 2026-11-24: the gateway or the upstream refused the request, or the client went away. The record does not say which. The 4xx of the hour, with the refusals of limits and capabilities: getPet 7, deletePet 3 (the key may not call it now) and no operation 1.',
    ],
  ])('%s', (_, facts, sentence) => {
    const { refusals } = explainMinute({ ...nothing, ...facts });
    expect(refusals.map((one) => one.sentence)).toContain(sentence);
  });

  it('is absent for a kind without a refusal', () => {
    const operationsOfHour = [{ operationId: 'getPet', clientErrors: 5 }];
    const minutesOfHour = [minute({ admitted: 60 }), minute({ minute: 5 }, undefined, at('14:04:00'))];
    expect(explainMinute({ ...nothing, minutesOfHour, operationsOfHour }).refusals).toEqual([]);
  });

  it('comes first for the most frequent kind of the minute, and last for kinds of the hour', () => {
    const { refusals } = explainMinute({
      ...nothing,
      minutesOfHour: [minute({ minute: 3, banned: 9, concurrent: 1 }, 5)],
      networksOfHour: [{ network: '*', requests: 99, lastMs: 0 }],
    });
    expect(refusals.map(({ by, requests, per }) => [by, requests, per])).toEqual([
      ['banned', 9, 'minute'],
      ['unauthorized', 5, 'minute'],
      ['minute', 3, 'minute'],
      ['concurrent', 1, 'minute'],
      ['address', 99, 'hour'],
    ]);
  });
});

describe('the sentence about the minute', () => {
  it.each<[string, Partial<MinuteFacts>, string]>([
    [
      'with refusals',
      { minutesOfHour: [minute({ admitted: 1, minute: 1_204 })] },
      'acme sent 1,205 requests in the minute from 14:03:00 UTC on 2026-11-24. 1 was admitted, and 1,204 refused.',
    ],
    [
      'without refusals',
      { minutesOfHour: [minute({ admitted: 20 })] },
      'acme sent 20 requests in the minute from 14:03:00 UTC on 2026-11-24. The limits admitted all of them.',
    ],
    [
      'without refusals by limits, but with invalid secrets',
      { minutesOfHour: [minute({ admitted: 31 }, 23)] },
      'acme sent 31 requests with a valid secret in the minute from 14:03:00 UTC on 2026-11-24. The limits admitted all of them. 23 requests with an invalid secret of the key were refused with 401 or 429.',
    ],
    [
      'with refusals and an invalid secret',
      { minutesOfHour: [minute({ admitted: 60, minute: 2 }, 1)] },
      'acme sent 62 requests with a valid secret in the minute from 14:03:00 UTC on 2026-11-24. 60 were admitted, and 2 refused. 1 request with an invalid secret of the key was refused with 401 or 429.',
    ],
    [
      'with invalid secrets alone',
      { minutesOfHour: [minute({}, 2)] },
      'No request that reached the limits of acme is recorded in the minute from 14:03:00 UTC on 2026-11-24. 2 requests with an invalid secret of the key were refused with 401 or 429.',
    ],
    [
      'in which processes counted alone, because Redis was away',
      {
        minutesOfHour: [minute({ admitted: 189 })],
        outages: [{ fromMs: at('14:02:01'), toMs: at('14:04:10') }],
      },
      'acme sent 189 requests in the minute from 14:03:00 UTC on 2026-11-24. The limits admitted all of them. Redis was away from 14:02:01 UTC until 14:04:10 UTC: each process counted the requests on its own, so more than a limit may have been admitted.',
    ],
    [
      'in which one server of a Redis Cluster was away, and with refusals',
      {
        minutesOfHour: [minute({ admitted: 9, minute: 1 })],
        outages: [{ fromMs: at('14:02:01'), toMs: at('14:04:10'), server: 'r1:6379' }],
      },
      'acme sent 10 requests in the minute from 14:03:00 UTC on 2026-11-24. 9 were admitted, and 1 refused. The Redis server r1:6379 was away from 14:02:01 UTC until 14:04:10 UTC: each process counted the requests of the keys on this server on its own, so more than a limit may have been admitted.',
    ],
    [
      'in which Redis was away for a moment, and nothing was admitted',
      {
        minutesOfHour: [minute({ minute: 3 })],
        outages: [{ fromMs: at('14:03:10'), toMs: at('14:03:10') + 230 }],
      },
      'acme sent 3 requests in the minute from 14:03:00 UTC on 2026-11-24. 0 were admitted, and 3 refused. Redis was away for 0.2 s at 14:03:10 UTC: each process counted the requests on its own.',
    ],
    [
      'in which Redis was away and requests were refused without it',
      {
        minutesOfHour: [minute({ admitted: 20 })],
        outages: [{ fromMs: at('14:03:59'), toMs: at('14:04:10') }],
        countsAlone: false,
      },
      'acme sent 20 requests in the minute from 14:03:00 UTC on 2026-11-24. The limits admitted all of them.',
    ],
    [
      'that has not ended',
      { minutesOfHour: [minute({ admitted: 1 })], nowMs: at('14:03:59.999') },
      'acme sent 1 request in the minute from 14:03:00 UTC, so far. The limits admitted it.',
    ],
    [
      'without a request',
      { minutesOfHour: [minute({ admitted: 20 }, undefined, at('14:04:00'))] },
      'No request that reached the limits of acme is recorded in the minute from 14:03:00 UTC on 2026-11-24.',
    ],
  ])('%s', (_, facts, sentence) => {
    expect(explainMinute({ ...nothing, ...facts }).sentence).toBe(sentence);
  });
});

describe('the notes', () => {
  it('name the upstreams of failed requests', () => {
    const failed = [
      { upstream: 'store', units: 3 },
      { upstream: '*', units: 1 },
    ];
    const text =
      'failed: they ended with 5xx or were cut by the gateway or an upstream. By upstream: store 3, other 1.';
    expect(explainMinute({ ...nothing, failed }).notes).toEqual([`4 admitted requests ${text}`]);
    expect(explainMinute({ ...nothing, failed, counted: 'unit' }).notes).toEqual([
      `Admitted requests of 4 units ${text}`,
    ]);
  });

  it('warn that counts may still arrive within a minute after the end of the minute', () => {
    const late = ['Other processes may still send counts of this minute.'];
    expect(explainMinute({ ...nothing, nowMs: at('14:04:59.999') }).notes).toEqual(late);
    expect(explainMinute({ ...nothing, nowMs: at('14:05:00') }).notes).toEqual([]);
  });
});
