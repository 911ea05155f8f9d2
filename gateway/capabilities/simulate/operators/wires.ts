import * as z from 'zod';
import {
  components,
  count,
  instant,
  list,
  missing,
  onlyLastActive,
  quantity,
  recordedFrom,
  words,
} from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';
import type { PlanAdvice, Proposals } from '../../../shared/model.ts';
import { adviceWords } from '../../lists/configuration.ts';
import { simulateBody } from './simulation-body.ts';

/** The figures and proposals of other capabilities. */
const figures = shapeOf(
  adviceWords.map((words) => words.figures),
  quantity.optional(),
) as { [Name in keyof PlanAdvice]-?: z.ZodOptional<z.ZodNumber> };
const proposals = shapeOf(
  adviceWords.map((words) => words.proposals),
  z.record(z.string(), z.string()),
) as { [Name in keyof Proposals]: z.ZodRecord<z.ZodString, z.ZodString> };

function shapeOf(all: readonly Readonly<Record<string, string>>[], schema: z.ZodType) {
  const members = all.flatMap((descriptions) => Object.entries(descriptions));
  return Object.fromEntries(members.map(([name, description]) => [name, schema.describe(description)]));
}

const simulatedMinute = z.object({
  at: instant,
  offered: count,
  admittedNow: count,
  admittedThen: count.describe('The mean of the lower and the upper bound.'),
});

const totals = z.object({
  keys: count.describe('Keys with requests.'),
  offered: count,
  refusedNow: count,
  refusedThen: count,
  refusedThenMin: count,
  refusedThenMax: count,
  keysRefusedMore: count.describe('Keys that the simulated limits refuse more often than the gateway did.'),
  keysRefusedLess: count,
  keysUncertain: count.describe(
    'Keys of which the order of the requests decides whether the simulated limits refuse more or fewer, or as many.',
  ),
  keysGranted: count.describe('Keys that had a grant in the period. It replaces limits also after an edit.'),
  keysChanged: count.describe(
    'Keys whose limits changed in the period. The whole minute of a change is replayed under its last limits.',
  ),
  newlyLimitedKeys: count.describe('Keys that only the simulated limits refuse.'),
  freedKeys: count.describe('Keys that the gateway refused, but the simulated limits would not.'),
});

/** The figures of `totals`, which are described once. */
const totalsOfPlan = Object.fromEntries(Object.keys(totals.shape).map((name) => [name, count])) as Record<
  keyof typeof totals.shape,
  typeof count
>;

/** The response of `POST /simulate`. */
export const simulationShown = z
  .object({
    missing,
    from: instant.describe(`${recordedFrom('period')} A whole minute.`),
    to: instant,
    minutesSinceAt: instant
      .optional()
      .describe('The beginning of the record of minutes, if the requested period begins earlier.'),
    source: words('record'),
    reproduced: z.object({
      recordedRefusals: count.describe('Recorded requests that windows refused.'),
      replayedRefusals: count.describe(
        'Requests that windows refuse in the replay under the limits of their time.',
      ),
      minutesThatDiffer: count.describe('Minutes in which both numbers differ for some key.'),
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
              'What is on record and may explain the difference, such as an outage, an edit or a grant, or that nothing is.',
            ),
        }),
      ).describe('The first minutes with a difference.'),
    }),
    totals,
    plans: list(z.object({ ...totalsOfPlan, name: z.string(), ...figures })).describe(
      'The same figures of each plan.',
    ),
    ...proposals,
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
            'The lower bound of `refusedThen`; `refusedThenMax` is the upper bound. Absent if both are equal.',
          ),
        refusedThenMax: count.optional(),
        firstRefusedAt: instant
          .optional()
          .describe('The first minute with refusals in the estimate. Absent if no refusal is certain.'),
        censoredMinutes: count.describe(
          'Minutes in which requests were refused or banned. The record does not show how many requests the client would have sent without that.',
        ),
      }),
    ).describe(
      'Keys with recorded refusals, or possible refusals under the simulated limits, the largest change first.',
    ),
    moreKeys: count.describe('The number of such keys that are not listed.'),
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
          'The recorded requests of the group, by whole hours, that the simulation leaves out.',
        ),
        trial: z
          .string()
          .optional()
          .describe('A `trial` with the edited limits, as a line of the configuration of the plan.'),
      }),
    )
      .optional()
      .describe(
        'Edited groups that the simulation does not replay, or only in part, because their operations are recorded only by the hour.',
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
  description: `Replays the usage record under other limits, as if they had been effective since \`from\`. Each minute is replayed under the limits of its time, with the edit: the record of changes has earlier limits of plans and keys, and grants. The simulation changes nothing. It first checks itself: under the limits of their time, the replay must refuse the recorded number of requests (\`reproduced\`). For this check, bans, refusals of limits per second and 503 are taken from the record where this is possible. \`refusedNow\` and \`refusedThen\` count the offered requests that are not admitted, including bans. Refusals of the limit of concurrent requests are left out. The order of requests within a minute is not recorded. \`refusedThenMin\` and \`refusedThenMax\` are bounds for every order, and \`refusedThen\` is about the mean of both. The bounds also cover a request that several limits could refuse, but no ban that begins with refusals of groups. The simulation covers the active keys of edited plans and the edited active keys, or all active keys if nothing or the rules for bans are edited. Active keys had a request since \`from\`. ${onlyLastActive} The gateway works about 2 s for a response, and its \`next\` continues the simulation. A token that may read is sufficient.`,
  body: simulateBody,
  answers: { 200: { description: 'The result of the simulation.', schema: simulationShown } },
});

export type SimulatedMinute = z.output<typeof simulatedMinute>;
