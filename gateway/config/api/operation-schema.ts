import * as z from 'zod';
import { date } from '../../keys/key-schema.ts';
import type { Deprecation, Method, Operation } from '../../shared/model.ts';
import { expects, givenName, word } from '../../shared/schema/schema-parts.ts';

export const anId = '1 to 100 of the characters A-Z a-z 0-9 . _ -';

/** The members of an operation in the API document that the gateway reads. Other members are for clients and other tools. */
export const operationSchema = z.object({
  operationId: givenName(anId, /^[A-Za-z0-9._-]{1,100}$/).optional(),
  deprecated: z.unknown().optional(),
  'x-deprecated-since': date.optional(),
  'x-deprecated-sunset': date.optional(),
  'x-deprecated-successor': z.string(expects('the operationId of another operation')).optional(),
  'x-after-sunset': word('gone', 'serve').optional(),
  'x-stability': word('experimental', 'beta').optional(),
  'x-upgrade': word('websocket').optional(),
  'x-upstream': z.unknown().optional(),
});

export type StatedOperation = z.output<typeof operationSchema>;

/** The names of the gateway's own members. */
export const extensionNames = Object.keys(operationSchema.shape).filter((name) => name.startsWith('x-'));
export const deprecationNames = extensionNames.filter((name) => /^x-(deprecated|after-sunset)/.test(name));

/** Compiles an operation for the request path. Its successor is looked up after all operations are read. */
export function compileOperation(
  stated: StatedOperation,
  place: {
    readonly id: string;
    readonly method: Method;
    readonly template: string;
    readonly upstream: string;
  },
): Operation {
  const { 'x-stability': stability, 'x-upgrade': upgrade } = stated;
  const deprecation = compileDeprecation(stated);
  const { id, method, template, upstream } = place;
  return {
    id,
    method,
    template,
    ...(stability && { stability }),
    ...(deprecation && { deprecation }),
    ...(upgrade && { upgrade }),
    upstream,
  };
}

function compileDeprecation(stated: StatedOperation): Deprecation | undefined {
  const { 'x-deprecated-since': sinceMs, 'x-deprecated-sunset': sunsetMs } = stated;
  if (stated.deprecated !== true || sinceMs === undefined) return undefined;
  const afterSunset = stated['x-after-sunset'] ?? 'gone';
  return { sinceMs, ...(sunsetMs !== undefined && { sunsetMs }), afterSunset };
}
