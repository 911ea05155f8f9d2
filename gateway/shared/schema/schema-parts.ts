import * as z from 'zod';
import { datePattern, formatDuration, parseDate, parseDuration } from './dates-and-durations.ts';
import { marks } from './marks.ts';

/** A message continues a sentence that begins with the name of the field. */
export function expects(what: string) {
  return {
    error: ({ input }: { readonly input?: unknown }) =>
      input === undefined ? `is missing; write ${what}` : `must be ${what}`,
  };
}

/**
 * A mapping with known fields only. The message for an unknown field is the list of the known fields, from which `shapeFaults` creates a
 * fault for each unknown field.
 */
export function fields<Shape extends z.core.$ZodLooseShape>(what: string, shape: Shape) {
  const { error } = expects(what);
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : error(issue)),
  });
}

export function text(what: string, pattern = /^.+$/s) {
  const wanted = expects(what);
  const error = (issue: { readonly input?: unknown }) =>
    // YAML reads an unquoted 1234 as a number and an unquoted true as a boolean.
    typeof issue.input === 'number' || typeof issue.input === 'boolean'
      ? `${wanted.error(issue)}; put it in quotes`
      : wanted.error(issue);
  return z.string({ error }).regex(pattern, { ...wanted, abort: true });
}

/** The only name that cannot become a member of a JavaScript object by assignment. */
const reservedName = '__proto__';
const reservedNameFault = `must not be \`${reservedName}\`, which JavaScript keeps for itself; write another name`;

/** Without `__proto__`, because the chosen name becomes a member name of an object. */
export function givenName(what: string, pattern: RegExp) {
  return text(what, pattern).refine((written) => written !== reservedName, reservedNameFault);
}

/** Members with names that clients choose. `z.record` alone would silently drop a member with the name `__proto__`. */
export function membersByName<Name extends z.ZodType<string, string>, Member extends z.ZodType>(
  name: Name,
  member: Member,
  what: string,
) {
  return z
    .unknown()
    .refine((stated) => !Object.hasOwn(Object(stated), reservedName), {
      error: reservedNameFault,
      path: [reservedName],
      abort: true,
    })
    .pipe(z.record(name, member, expects(what)));
}

export function wholeNumber(min: number, max: number) {
  const what = expects(`a whole number from ${min} to ${max}`);
  return z.int(what).min(min, what).max(max, what);
}

export function word<const Words extends readonly [string, ...string[]]>(...words: Words) {
  return z.enum(words, expects(words.join(' or ')));
}

export function flag() {
  return z.boolean(expects('true or false'));
}

export function list<Entry extends z.ZodType>(entry: Entry, what: string) {
  return z.array(entry, expects(what));
}

/** As epoch ms. @param error the message for any other value */
export function dateAsMs(error: z.core.$ZodErrorMap | string) {
  return z
    .string({ error })
    .regex(datePattern, { error, abort: true })
    .refine((written) => parseDate(written) !== undefined, { error })
    .transform((written) => parseDate(written) ?? Number.NaN);
}

const aDate = expects('a date such as 2027-01-31 or 2027-01-31T12:00:00Z');

/** As it was written. */
export const writtenDate = z.string(aDate).refine((written) => parseDate(written) !== undefined, aDate);

export const date = dateAsMs(aDate.error);

/** @param format converts milliseconds back to a text that `written` accepts */
export function durationAsMs(written: z.ZodString, format = formatDuration) {
  return z.codec(written, z.number(), { decode: parseDuration, encode: format });
}

/** More than 0 % and at most 100 %. */
const percentPattern = /^(?!0+(\.0+)? ?%)(100(\.0+)?|\d{1,2}(\.\d{1,3})?) ?%$/;

const aPercentage = expects(
  'a percentage above 0 % and up to 100 % with at most three decimals, such as 3 % or 0.5 %',
);

/** A share of requests in percent. The output is the number of percent. */
export const percent = z.codec(z.string(aPercentage).regex(percentPattern, aPercentage), z.number(), {
  decode: Number.parseFloat,
  encode: (written) => `${written} %`,
});

export function digestOf(what: 'secret' | 'token') {
  return text(`the SHA-256 digest of the whole ${what}, 64 hex digits`, /^[0-9a-fA-F]{64}$/)
    .transform((digest) => digest.toLowerCase())
    .describe(`Hex SHA-256 digest of the whole ${what}: printf %s ${what.toUpperCase()} | sha256sum`)
    .register(marks, { secret: 'digest' });
}

/** A path that the gateway serves itself: only characters that need no percent-encoding and that the gateway accepts in requests. */
export function ownPath(example: string) {
  return text(
    `a path such as ${example}, of A-Z a-z 0-9 . _ ~ - and slashes, without one at its end`,
    /^(?!.*\/\.{1,2}(?:\/|$))(?:\/[A-Za-z0-9._~-]+)+$/,
  );
}
