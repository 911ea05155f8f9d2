import * as z from 'zod';
import { date } from '../../../keys/key-schema.ts';
import { fields, flag, text } from '../../../shared/schema/schema-parts.ts';
import { addFigures } from '../../../shared/structures/add-figures.ts';
import { count, instant, list } from '../../api/response-parts.ts';
import { behindShown } from '../../operations/flush-route.ts';

export const makegoodBody = fields('an object with from and to', {
  from: date.describe('The beginning of the period. The period includes the whole minute of this time.'),
  to: date.describe(
    'The end of the period, which includes the whole minute of this time. A time in the future means now.',
  ),
  upstream: text('the name of an upstream')
    .optional()
    .describe('Only requests for this upstream; `*` for upstreams that are not recorded separately.'),
  plan: text('the name of a plan').optional().describe('Only keys that are on this plan now.'),
  dryRun: flag()
    .default(false)
    .describe('Whether the gateway only computes the result. A token that may read is sufficient.'),
  after: text('the next of the previous part')
    .optional()
    .describe(
      'The `next` of the previous part. The other members are the same as in the request for the first part.',
    ),
});

export type MakegoodBody = z.output<typeof makegoodBody>;

const byWindow = z.object({ day: count, month: count });

/** A credit of a key. */
export const creditShown = z.object({
  at: instant.describe('The time at which units were given back.'),
  from: instant.describe('The beginning of the period in which the requests failed.'),
  to: instant.describe('The end of the period.'),
  failedUnits: count.describe(
    'The units of the failed requests for which the key had received no credit before.',
  ),
  givenBack: byWindow.describe('The units that were given back, by window.'),
});

/** The figures of a run so far. */
const makegoodFigures = z.object({
  examinedKeys: count.describe('The keys whose records were read.'),
  keys: count.describe('The keys with failed units in the period.'),
  failedUnits: count.describe(
    'The recorded failed units of these keys, including units that earlier runs have given back.',
  ),
  creditedKeys: count.describe('The keys that got units back.'),
  givenBack: byWindow.describe(
    'The units that were given back, by window. A dry run computes the units that a run would give back.',
  ),
  unreadKeys: count.describe(
    'The keys whose record could not be read, or whose counts could not be changed.',
  ),
  unread: list(z.string()).describe('The ids of the first of these keys.'),
});

export type MakegoodFigures = z.output<typeof makegoodFigures>;

/** The response of `POST /makegood`. */
export const makegoodShown = makegoodFigures.extend({
  from: instant.describe('The beginning of the period, or of the usage record if the record begins later.'),
  to: instant.describe('The end of the period, or the time of the request if the period ends later.'),
  dryRun: z.literal(true).optional().describe('Present for a dry run.'),
  behind: behindShown
    .optional()
    .describe(
      'The processes that did not send their counts in time. The figures lack the last counts of these processes, so the run must be repeated. Absent if there are none, and absent in later parts.',
    ),
  next: z
    .string()
    .optional()
    .describe(
      'The value of `after` for the next part; absent in the last part. The figures include all earlier parts.',
    ),
});

export type MakegoodShown = z.output<typeof makegoodShown>;

export const noFigures: MakegoodFigures = {
  examinedKeys: 0,
  keys: 0,
  failedUnits: 0,
  creditedKeys: 0,
  givenBack: { day: 0, month: 0 },
  unreadKeys: 0,
  unread: [],
};

/** Adds the figures of two parts of a run. @param namedMax the maximum number of ids in `unread` */
export function addParts(
  { unread, ...one }: MakegoodFigures,
  { unread: more, ...other }: MakegoodFigures,
  namedMax: number,
): MakegoodFigures {
  return { ...addFigures(one, other), unread: [...unread, ...more].slice(0, namedMax) };
}

const cursor = z.object({ run: z.string().regex(/^[\w-]{8}$/), after: z.string(), figures: makegoodFigures });

/** The position of a run between two parts: its name, the last key of the previous part, and the figures so far. */
export type MakegoodCursor = z.output<typeof cursor>;

export function packCursor(position: MakegoodCursor): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Returns undefined for a text that `packCursor` did not make. */
export function parseCursor(text: string): MakegoodCursor | undefined {
  try {
    return cursor.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
}
