import * as z from 'zod';
import { anyMethod, type Deprecation, type Method, type Operation } from '../../shared/model.ts';
import { intervalPattern, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import {
  date,
  expects,
  fields,
  givenName,
  list,
  wholeNumber,
  word,
} from '../../shared/schema/schema-parts.ts';

const brownoutsMax = 20;

function interval(what: string) {
  return z.string(expects(what)).regex(intervalPattern, expects(what)).transform(parseDuration);
}

const brownouts = list(
  fields('a mapping with from, for and perhaps every', {
    from: date,
    every: interval('a duration such as 1h or 7d').optional(),
    for: interval('a duration such as 5m'),
  }),
  'a list of mappings, each with from, for and perhaps every',
)
  .min(1, expects('a list of at least one mapping with from and for'))
  .max(brownoutsMax, expects(`a list of at most ${brownoutsMax} mappings`));

/** The fields of an operation in the API document that the gateway reads. Other fields are for clients and other tools. */
export const operationSchema = z.object({
  operationId: givenName('text', /^.*$/s).optional(),
  deprecated: z.unknown().optional(),
  'x-deprecated-since': date.optional(),
  'x-deprecated-sunset': date.optional(),
  'x-deprecated-successor': z.string(expects('the operationId of another operation')).optional(),
  'x-after-sunset': word('gone', 'serve').optional(),
  'x-brownouts': brownouts.optional(),
  'x-stability': word('experimental', 'beta').optional(),
  'x-upgrade': word('websocket').optional(),
  'x-cost': wholeNumber(0, 10_000).optional(),
  'x-upstream': z.unknown().optional(),
});

export type StatedOperation = z.output<typeof operationSchema>;

/** The names of the `x-` fields that the gateway defines. */
export const extensionNames = Object.keys(operationSchema.shape).filter((name) => name.startsWith('x-'));
export const deprecationNames = extensionNames.filter((name) =>
  /^x-(deprecated|after-sunset|brownouts)/.test(name),
);

/** Compiles an operation for the request path. The operation's successor is looked up later, after all operations are read. */
export function compileOperation(
  stated: StatedOperation,
  place: {
    readonly id: string;
    readonly method: Method;
    readonly template: string;
    readonly upstream: string;
  },
): Operation {
  return {
    ...place,
    stability: stated['x-stability'],
    deprecation: compileDeprecation(stated),
    upgrade: stated['x-upgrade'],
    cost: stated['x-cost'],
  };
}

function compileDeprecation(stated: StatedOperation): Deprecation | undefined {
  const { 'x-deprecated-since': sinceMs, 'x-deprecated-sunset': sunsetMs } = stated;
  if (stated.deprecated !== true) return undefined;
  const brownouts = stated['x-brownouts']?.map((series) => {
    return { fromMs: series.from, everyMs: series.every, forMs: series.for };
  });
  return {
    sinceMs,
    sunsetMs,
    afterSunset: stated['x-after-sunset'] ?? 'gone',
    ...(brownouts && { brownouts }),
  };
}

/**
 * The single operation of a configuration without an API document. This operation has every method and path below the base URL.
 */
export function anyOperation(upstream: string): Operation {
  return { id: 'any', method: anyMethod, template: '/*', upgrade: 'websocket', upstream };
}
