import * as z from 'zod';
import { dayMs, minuteMs } from '../words/figures.js';
import { agePattern, type Period, parseDuration } from './dates-and-durations.ts';
import { dateAsMs } from './schema-parts.ts';

/** The schema of a parameter converts its text to the value that the route uses. */
export type QuerySchema = z.ZodObject<z.core.$ZodLooseShape, z.core.$strict>;

export type ParsedQuery<Schema extends QuerySchema> =
  | { readonly kind: 'parsed'; readonly query: z.output<Schema> }
  | { readonly kind: 'invalid'; readonly message: string };

export const noQuery = z.strictObject({});

/**
 * Notes the JSON Schema of a parameter, for documents. The schema of a number converts a text, and the schema of a list splits a text, so
 * Zod would state both as a text.
 */
function shownAs<Schema extends z.ZodType>(
  schema: Schema,
  parameter: Readonly<Record<string, unknown>>,
): Schema {
  return schema.meta({ parameter });
}

/** A parameter as OpenAPI states it. A list is one text with commas. */
export function parameterShown(schema: z.ZodType) {
  let inner = schema;
  let isRequired = true;
  let defaults = {};
  let { description } = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault) {
    isRequired = false;
    if (inner instanceof z.ZodDefault) defaults = { default: inner.def.defaultValue };
    inner = inner.unwrap() as z.ZodType;
    description ??= inner.description;
  }
  const { $schema: _, description: __, ...made } = z.toJSONSchema(inner, { io: 'input' });
  const shown = { ...(inner.meta()?.parameter ?? made), ...defaults } as Readonly<Record<string, unknown>>;
  return { description, isRequired, isList: shown.type === 'array', schema: shown };
}

export function queryOf<Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape);
}

export function wholeNumber(min: number, max: number) {
  const wanted = `must be a whole number from ${min} to ${max}`;
  const schema = z
    .string()
    .regex(/^\d{1,15}$/, { error: wanted, abort: true })
    .transform(Number)
    .refine((number) => number >= min && number <= max, wanted);
  return shownAs(schema, { type: 'integer', minimum: min, maximum: max });
}

export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words, { error: `must be one of ${words.join(', ')}` });
}

/** Separated by commas. */
export function someOf<const Word extends string>(stated: readonly Word[]) {
  const words = [...new Set(stated)];
  const wanted = `must be one or more of ${words.join(', ')}, separated by commas`;
  const isWord = (text: string): text is Word => words.some((word) => word === text);
  const schema = z
    .string()
    .refine((text) => text.split(',').every(isWord), { error: wanted, abort: true })
    .transform((text): ReadonlySet<Word> => new Set(text.split(',').filter(isWord)));
  return shownAs(schema, { type: 'array', items: { type: 'string', enum: words }, minItems: 1 });
}

export function text(charsMax: number) {
  const wanted = `must be a text of 1 to ${charsMax} characters`;
  return z.string().min(1, wanted).max(charsMax, wanted);
}

/** A date (the start of the day in UTC), or a time with its zone (RFC 3339), as epoch ms. */
export function instantParameter() {
  const schema = dateAsMs('must be a date such as 2026-11-22, or a time such as 2026-11-22T10:31:00Z');
  return shownAs(schema, { type: 'string', anyOf: [{ format: 'date' }, { format: 'date-time' }] });
}

/** Parameters of several operations. The API document describes each once, by its id. */
export const sharedParameters = z.registry<{ id: string }>();

export const periodQuery = {
  from: instantParameter()
    .optional()
    .describe('By default 1,439 minutes before the minute of `to`.')
    .register(sharedParameters, { id: 'from' }),
  to: instantParameter().optional().describe('By default now.').register(sharedParameters, { id: 'to' }),
};

/** The last 24 hours without parameters. Returns an error for an invalid period. */
export function periodOf(
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
  nowMs: number,
  daysMax = 400,
): Period | { readonly kind: 'invalid'; readonly message: string } {
  const toMs = to ?? nowMs;
  const fromMs = from ?? Math.floor(toMs / minuteMs) * minuteMs - dayMs + minuteMs;
  if (fromMs > toMs)
    return { kind: 'invalid', message: 'The query parameter `from` must not be later than `to`.' };
  if (toMs - fromMs <= daysMax * dayMs) return { fromMs, toMs };
  const message = `The query parameters \`from\` and \`to\` must not be more than ${daysMax} ${daysMax === 1 ? 'day' : 'days'} apart.`;
  return { kind: 'invalid', message };
}

/** A duration such as 90d, as ms. */
export function age() {
  const schema = z
    .string()
    .regex(agePattern, 'must be a duration such as 90d, 12h or 30m')
    .transform(parseDuration);
  return shownAs(schema, { type: 'string', pattern: agePattern.source });
}

export function month() {
  return z.string().regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11');
}

export function cursor(pattern: RegExp) {
  return z.string().regex(pattern, 'must be the `next` of an earlier response');
}

/** An unknown or repeated parameter is an error, because a misspelt filter must not silently select everything. */
export function parseQuery<Schema extends QuerySchema>(schema: Schema, search: string): ParsedQuery<Schema> {
  const parameters = [...new URLSearchParams(search)];
  const names = parameters.map(([name]) => name);
  const known = Object.keys(schema.shape);
  for (const [index, name] of names.entries()) {
    if (!known.includes(name)) return { kind: 'invalid', message: `${unknownName(name)}; ${listOf(known)}` };
    if (names.indexOf(name) !== index) {
      return { kind: 'invalid', message: `The query parameter \`${name}\` appears twice.` };
    }
  }
  const parsed = schema.safeParse(Object.fromEntries(parameters));
  if (parsed.success) return { kind: 'parsed', query: parsed.data };
  const [issue] = parsed.error.issues;
  const name = issue?.path.join('.') ?? '';
  // The schemas define all messages but this one.
  const what = known.includes(name) && names.includes(name) ? issue?.message : 'is missing';
  return { kind: 'invalid', message: `The query parameter \`${name}\` ${what}.` };
}

/** A long name is not repeated in the message, because it may be a secret that was pasted into the address bar. */
function unknownName(name: string): string {
  return /^[\w-]{1,24}$/.test(name)
    ? `There is no query parameter \`${name}\` here`
    : 'There is an unknown query parameter';
}

function listOf(known: readonly string[]): string {
  return known.length === 0 ? 'this path has none.' : `known are: ${known.join(', ')}.`;
}
