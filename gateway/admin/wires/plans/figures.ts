import * as z from 'zod';
import {
  components,
  count,
  instant,
  limitsByField,
  list,
  missing,
  onlyLastActive,
  positive,
  recordedFrom,
} from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';
import { periodQuery, queryOf, wholeNumber } from '../../../shared/schema/query-parameters.ts';
import { trialFigures } from '../keys/key.ts';

const readOfKeys = `${onlyLastActive} The gateway reads their records for about 5 s at most, the most recently active key first. If this time is too short, \`examinedKeys\` is less than \`activeKeys\`.`;

const spread = z
  .object({
    limit: positive
      .optional()
      .describe('The limit of the plan; absent without a limit for this window, or if each key has its own.'),
    buckets: list(
      z.object({
        from: positive.describe('The keys of the bucket have at least this number of units.'),
        to: z.number().meta({
          type: 'integer',
          minimum: 2,
          description: 'The keys of the bucket have fewer units.',
        }),
        keys: count,
      }),
    ).describe(
      'Buckets on a scale of 1, 2, 5, 10, 20, 50, …, without a gap between the lowest and the highest bucket with a key. No bucket has numbers both up to the limit and above it.',
    ),
  })
  .describe('Numbers of keys by their units.')
  .register(components, { id: 'Spread' });

const counted = 'Refused requests count, except those that groups and `concurrent` refused.';

export type Spread = z.output<typeof spread>;

/** The keys from which figures of a plan are made. */
const activeShape = {
  activeKeys: count.describe(
    'Keys on the plan with requests since the beginning of the period, among the 10,000 keys that were active last.',
  ),
  examinedKeys: count.describe('Active keys whose record was read within the time limit.'),
};

const planDistribution = z
  .object({
    missing,
    plan: z.string(),
    hours: positive,
    keys: count.describe(
      'Keys on the plan: all keys of the configuration, and the active keys of the key directory.',
    ),
    ...activeShape,
    refusedKeys: count.describe(
      'Keys with a request that a window of all operations or a ban refused, or that got 503 because Redis was away.',
    ),
    minute: spread.describe(`The keys by the units of their busiest minute. ${counted}`),
    day: spread.describe(
      'The keys by the units of all their requests of these hours, counted in the same way.',
    ),
    hasCosts: z.literal(true).optional().describe('Present if a counted request did not cost 1 unit.'),
  })
  .register(components, { id: 'PlanDistribution' });

export type PlanDistribution = z.output<typeof planDistribution>;

export type ReadPlanDistribution = (plan: string, hours: number) => Promise<PlanDistribution | undefined>;

/** The longest period. Without Redis, the usage record keeps only one day. */
const hoursMax = 24;

export const getPlanDistributionWire = defineWire({
  method: 'GET',
  path: '/plans/{name}/distribution',
  operationId: 'getPlanDistribution',
  tag: 'Keys',
  summary: `The distribution of a plan's keys`,
  description: `Two distributions of the plan's keys: by the busiest minute of each key, and by all its requests, in units. Refusals count, except by groups and \`concurrent\`. ${readOfKeys} The result is cached for 30 s.`,
  params: { name: z.string().describe('The name of a plan.') },
  query: queryOf({
    hours: wholeNumber(1, hoursMax)
      .default(hoursMax)
      .describe('The number of hours, including the present minute.'),
  }),
  answers: { 200: { description: 'The distribution.', schema: planDistribution } },
});

const planTrial = z
  .object({
    missing,
    plan: z.string(),
    limits: limitsByField.describe('The present limits of the trial.'),
    limitsNow: limitsByField.describe('The present limits of the plan.'),
    fromAt: instant.describe(recordedFrom('period')),
    toAt: instant,
    firstAt: instant
      .optional()
      .describe('The first minute with a request that the trial decided; absent without such a request.'),
    sentence: z.string().describe('The figures as a text.'),
    ...trialFigures,
    triedKeys: count.describe('Keys with a request that the trial decided.'),
    refusedKeys: count.describe('Keys with a request that the trial would have refused.'),
    newlyRefusedKeys: count.describe('Those of `refusedKeys` of which the plan refused none of `requests`.'),
    ...activeShape,
    keys: list(z.object({ id: z.string(), name: z.string().optional(), ...trialFigures })).describe(
      'The `refusedKeys`. The key with the largest `refused` minus `refusedNow` comes first.',
    ),
    more: positive.optional().describe('The number of keys that are not in this list.'),
  })
  .register(components, { id: 'PlanTrial' });

export type PlanTrial = z.output<typeof planTrial>;

/** High, because an operator may want to contact every key holder. */
const keysMax = 10_000;

export const getPlanTrialWire = defineWire({
  method: 'GET',
  path: '/plans/{name}/trial',
  operationId: 'getPlanTrial',
  tag: 'Keys',
  summary: 'What the trial of a plan would have refused',
  description: `The decisions of the plan's trial on the requests of its keys, and the keys with requests that it would have refused. The figures belong to the present limits of the trial. ${readOfKeys} The result of the default period is cached for 30 s. A plan without a trial gets 404.`,
  params: { name: z.string().describe('The name of a plan.') },
  query: queryOf({
    ...periodQuery,
    limit: wholeNumber(1, keysMax).default(50).describe('The largest number of listed keys.'),
  }),
  answers: { 200: { description: 'The decisions of the trial.', schema: planTrial } },
});
