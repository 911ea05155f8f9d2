import * as z from 'zod';
import { planWindows } from '../shared/model.ts';
import type { LimitsByField } from './limits/limit-fields.ts';

/** Schemas with a name of their own in the OpenAPI document of the admin API, each registered where it is defined. */
export const components = z.registry<{ id: string }>();

/**
 * Parts of several response schemas. A response's type, the admin API's document and the checks in commands all come from the schema in the
 * response's wire.
 *
 * A command ignores unknown members, and accepts texts that are not in the list of a `words` schema, so it can read the responses of a
 * later release.
 */
export const count = z.number().meta({ type: 'integer', minimum: 0 });
export const positive = z.number().meta({ type: 'integer', minimum: 1 });
/** Charged to the limits. Omitted if it equals the number of admitted requests. */
export const chargedUnits = count
  .optional()
  .describe(
    'The units that were charged to the limits, if they are known and differ from the number of admitted requests.',
  );
export const integer = z.number().meta({ type: 'integer' });
/** At least 0; may have a fraction. */
export const quantity = z.number().meta({ minimum: 0 });
export const epochMs = integer.describe('Epoch milliseconds.');
export const instant = z.string().meta({ format: 'date-time' });

/** For descriptions of responses that read the index of active keys. It has fewer keys without Redis. */
export const onlyLastActive = 'Only the keys that were active last are considered, at most 10,000.';

export const nextPage = z
  .string()
  .optional()
  .describe('The value of `after` for the next page; absent on the last page.');

/** The file with a key of the configuration. */
export const keyFile = z
  .string()
  .optional()
  .describe('The path of the file with the key, absolute or relative to the folder of the configuration.');

export function list<Entry extends z.ZodType>(entry: Entry) {
  return z.array(entry).readonly();
}

/** Members with any names and numbers as values. */
export function byName(numbers: z.ZodType<number>) {
  return z.record(z.string(), numbers);
}

export const refusedShown = byName(positive).describe(
  'Refused requests, by the limit that refused them: a window, a window of a group such as `reports-minute`, `group` for other groups, or `concurrent` for the limit of requests in progress.',
);

export function words<const Word extends string>(...all: readonly Word[]) {
  return z.string().meta({ enum: all }) as unknown as z.ZodType<Word>;
}

/**
 * The members of a key or plan that a response shows as the operator wrote them. A new member of the schema is therefore also in the API's
 * document. @param without members that the response omits or shows in another form
 */
export function stated<Shape extends Readonly<Record<string, z.ZodType>>, Name extends keyof Shape>(
  shape: Shape,
  without: readonly Name[],
) {
  const shown = Object.entries(shape).filter(([name]) => !without.some((one) => one === name));
  const members = shown.map(([name, of]) => [name, z.unknown().optional().meta({ of })]);
  return Object.fromEntries(members) as {
    [Member in Exclude<keyof Shape, Name>]: z.ZodOptional<z.ZodType<z.output<Shape[Member]>>>;
  };
}

/** A member as `stated` shows it, with a name of its own in the document, because several responses have it. */
export function statedPart<Of extends z.ZodType>(of: Of, id: string) {
  const part = z.unknown().meta({ of }).register(components, { id });
  return part.optional() as unknown as z.ZodOptional<z.ZodType<z.output<Of>>>;
}

export const limitName = z
  .string()
  .describe(
    `The name of a window (${planWindows.join(', ')}). A limit of a group of operations has the name of the group before it, such as \`reports-minute\`.`,
  )
  .register(components, { id: 'WindowName' });
/** A later release may have more windows. */
export const limitsByField = z.record(
  z.string(),
  z.union([
    positive,
    z
      .record(z.string(), z.looseObject({ operations: list(z.string()).optional() }))
      .describe(
        'The groups of operations, each with its operations and its limits by window. A grant has no operations.',
      ),
  ]),
) as z.ZodType<LimitsByField>;
export const digestStart = z
  .string()
  .meta({ pattern: '^[0-9a-f]{8}$', description: 'The first 8 hex digits of a SHA-256 digest.' })
  .register(components, { id: 'DigestStart' });
export const processId = z
  .string()
  .meta({ pattern: '^[0-9a-f]{12}$', description: 'A random id that a process gets at its start.' })
  .register(components, { id: 'ProcessId' });
export const version = z
  .string()
  .meta({
    pattern: '^[0-9a-f]{12}$',
    description: 'A digest of the files of a configuration and of the variables in them.',
  })
  .register(components, { id: 'Version' });
/** Describes the beginning of the recorded part of a period. */
export function recordedFrom(period: string): string {
  return `The beginning of the ${period}, or of the days that the usage record keeps, if that is later.`;
}
/** In responses that a process can also make from its own memory. */
export const missing = z
  .object({
    sinceAt: instant
      .optional()
      .describe('Since when Redis, or a server of a Cluster, is away. Absent while it counts as available.'),
    countsFromAt: instant
      .optional()
      .describe(
        'When this gateway started. Its own counts begin then. Absent in a reply of an earlier version.',
      ),
    reason: z.string().optional().describe('Why Redis is away, with its address and the setting to check.'),
    what: list(z.string()).describe('What is not complete, such as `requests`.'),
  })
  .describe(
    'What a response lacks, because Redis did not reply. In its place, the response has what this gateway has counted or read, or nothing.',
  )
  .register(components, { id: 'Missing' })
  .optional();
export const isComplete = z
  .boolean()
  .describe('False if Redis did not reply, so that only data of this gateway is present.');

/** Processes that have not sent all their counts in time. */
export const behindShown = list(
  z.object({ id: processId, host: z.string(), pid: count, worker: positive.optional() }),
);
