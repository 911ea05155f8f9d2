import * as z from 'zod';
import { date, keyId, limit, operationIds } from '../../keys/key-schema.ts';
import { limitFieldNames, ofEachLimitField } from '../../keys/limit-fields.ts';
import { expects, fields, membersByName, text, wholeNumber } from '../../shared/schema/schema-parts.ts';
import { components, count, instant, list, quantity, words } from './response-parts.ts';
import { defineWire } from './wire.ts';

const keysListedMax = 1_000;

const editedLimit = z.union(
  [limit, z.null()],
  expects('a whole number from 1 to 999999999999999, or null for no limit'),
);

const windowEdits = ofEachLimitField(editedLimit.optional());

const groupEdit = z.union(
  [
    fields(`an object with some of operations, ${limitFieldNames.join(', ')}`, {
      operations: operationIds
        .optional()
        .describe('The operations of a new group, or other operations of a group.'),
      ...windowEdits,
    }),
    z.null(),
  ],
  expects('an object with limits, or null for no group'),
);

export const limitEdit = fields(`an object with some of ${limitFieldNames.join(', ')}, groups`, {
  ...windowEdits,
  groups: membersByName(text('the name of a group'), groupEdit, 'an object of limits by group')
    .optional()
    .describe('New limits by the name of a group of operations. null removes a group.'),
});

const milliseconds = wholeNumber(1, 1e12);

export const simulateBody = fields('an object with plans and keys, the limits to try', {
  from: date
    .optional()
    .describe(
      'The beginning of the period. By default 24 hours before `to`, but not before the beginning of the usage record.',
    ),
  to: date
    .optional()
    .describe('The end of the period, which includes the whole minute of this time. By default now.'),
  plans: membersByName(text('the name of a plan'), limitEdit, 'an object of limits by plan')
    .default({})
    .describe(
      'New limits by the name of a plan. Windows that are not named stay unchanged. null removes a limit.',
    ),
  keys: membersByName(keyId, limitEdit, 'an object of limits by the id of a key')
    .default({})
    .describe('New limits by the id of a key. They override the limits of its plan.'),
  bans: fields('an object with after, withinMs, forMs and maxMs', {
    after: limit,
    withinMs: milliseconds,
    forMs: milliseconds,
    maxMs: milliseconds,
  })
    .optional()
    .describe('The rules for bans, in place of the configured rules.'),
  plan: text('the name of a plan').optional().describe('Simulate only keys of this plan.'),
  minutesOf: keyId.optional().describe('The response also has each minute of this key.'),
  listed: wholeNumber(0, keysListedMax).default(keysListedMax).describe('The largest number of listed keys.'),
  after: keyId.optional().describe('The `next` of the previous part.'),
  until: keyId
    .optional()
    .describe('The last key of this part: the `next` of the same part in an earlier response.'),
});

const simulatedMinute = z.object({
  at: instant,
  offered: count,
  admittedNow: count,
  admittedThen: count.describe('The mean of the lower and the upper bound.'),
});

export const totals = z.object({
  keys: count.describe('Keys with requests.'),
  offered: count,
  refusedNow: count,
  refusedThen: count,
  refusedThenMin: count,
  refusedThenMax: count,
  keysRefusedMore: count.describe(
    'Keys that the simulated limits refuse more often than the present limits.',
  ),
  keysRefusedLess: count,
  newlyLimitedKeys: count.describe('Keys that the simulated limits refuse, but the present limits do not.'),
  freedKeys: count.describe('Keys that the present limits refuse, but the simulated limits do not.'),
});

/** The response of `POST /simulate`. */
export const simulationShown = z
  .object({
    from: instant.describe('The recorded part of the period, in whole minutes.'),
    to: instant,
    source: words('record'),
    reproduced: z.object({
      recordedRefusals: count.describe('Recorded requests that windows refused.'),
      replayedRefusals: count.describe('Requests that windows refuse in the replay of the present limits.'),
      minutesThatDiffer: count.describe('Minutes in which the two numbers differ for some key.'),
      differences: list(
        z.object({
          at: instant,
          keys: count.describe('The number of keys with a difference.'),
          of: list(z.string()).describe('The ids of some of these keys.'),
          recordedRefusals: count.describe('Recorded refusals of these keys in this minute.'),
          replayedRefusals: count,
          why: z
            .string()
            .describe(
              'The recorded outage, edit, grant or restart that explains the difference, or a sentence that no cause is on record.',
            ),
        }),
      ).describe('The first minutes with a difference.'),
    }),
    totals,
    plans: list(
      totals.extend({
        name: z.string(),
        guardShare: quantity
          .optional()
          .describe(
            'The largest share of refused requests, 0 to 1, in ten minutes with at least 100 requests. Each key counts for its part, as for a guard. A guard whose `refusedAtMost` is larger would not have reverted the plan. Present if the limits of the plan are edited, together with the limits of at most 99 other plans.',
          ),
      }),
    ),
    guards: z
      .record(z.string(), z.string())
      .describe(
        'The proposed `guard` of each plan that gets a smaller limit, as a line of the configuration. Its `refusedAtMost` is larger than `guardShare`.',
      ),
    keys: list(
      z.object({
        id: z.string(),
        plan: z.string(),
        offered: count,
        refusedNow: count,
        refusedThen: count,
        refusedThenMin: count
          .optional()
          .describe(
            'The lower bound of `refusedThen`; `refusedThenMax` is the upper bound. Absent if both equal `refusedThen`.',
          ),
        refusedThenMax: count.optional(),
        firstRefusedAt: instant
          .optional()
          .describe('The first minute in which the simulated limits refuse a request.'),
        censoredMinutes: count.describe(
          'Minutes in which requests were refused or banned. Clients send fewer requests in such minutes, so the record does not show how many requests they would have sent.',
        ),
      }),
    ).describe(
      'Keys with refusals under the present or the simulated limits, sorted by the change, with the largest change first.',
    ),
    moreKeys: count.describe('Keys with refusals that are not listed.'),
    activeKeys: count.describe('Active keys that the simulation covers.'),
    examinedKeys: count.describe('Active keys that this part covers.'),
    notReplayed: list(
      z.object({
        plan: z.string().optional(),
        key: z.string().optional(),
        group: z.string(),
        why: z.string(),
        isPartly: z
          .literal(true)
          .optional()
          .describe(
            'The simulation covers the requests since the group exists. Absent if the simulation keeps the present refusals of the group.',
          ),
        requests: count.describe(
          'The recorded requests of the operations of the group that the simulation leaves out. The group would have refused at most this number of them. The number covers whole hours.',
        ),
        trial: z
          .string()
          .optional()
          .describe('A `trial` of the plan with the edited limits, as a line of the configuration.'),
      }),
    )
      .optional()
      .describe(
        'Edited groups with requests that the simulation leaves out, because their operations are recorded only by the hour.',
      ),
    hasGroups: z
      .literal(true)
      .optional()
      .describe('Some bounds also cover the order in which requests of groups and other requests arrive.'),
    next: z.string().optional().describe('The value of `after` for the next part; absent in the last part.'),
    minutes: list(simulatedMinute)
      .optional()
      .describe('The minutes in which the key `minutesOf` sent requests.'),
  })
  .register(components, { id: 'Simulation' });

export const simulateWire = defineWire({
  method: 'POST',
  path: '/simulate',
  operationId: 'simulate',
  tag: 'Keys',
  summary: 'Simulate other limits',
  description: `Replays the usage record under other limits, as if they had been effective since \`from\`. Requests before \`from\` stay counted. The simulation changes nothing, and accepts limits instead of a configuration. The simulation first checks itself: under the present limits, the replay must refuse the recorded number of requests (\`reproduced\`). Bans, refusals of limits per second and 503 are taken from the record. \`refusedNow\` and \`refusedThen\` count the offered requests that were not admitted, including bans. Requests that the limit of concurrent requests refused are not offered, because no window was charged. Bans, limits per second, and requests of different costs depend on the order of requests within a minute, which is not recorded. \`refusedThenMin\` and \`refusedThenMax\` are bounds for every order, and \`refusedThen\` is the mean of both for each key. The minutes of a key add up to the key's \`refusedThen\`, without groups of operations. Groups are replayed by the minute, and the bounds also cover a request that several limits could refuse. \`notReplayed\` has the groups with requests that are recorded only by the hour. A simulation of the present limits returns the recorded refusals. The simulation covers the active keys with a changed limit, or all active keys if no limit is changed. The gateway works at most 2 s for a response. The \`next\` of the response continues the simulation. A token that may read is sufficient.`,
  body: simulateBody,
  answers: { 200: { description: 'The result of the simulation.', schema: simulationShown } },
});

export type SimulatedMinute = z.output<typeof simulatedMinute>;
