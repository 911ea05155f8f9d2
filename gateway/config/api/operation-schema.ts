import * as z from 'zod';
import { deprecationMembers } from '../../capabilities/lists/configuration.ts';
import { deprecationShapes } from '../../capabilities/lists/schemas.ts';
import { anyMethod, type Deprecation, type Method, type Operation } from '../../shared/model.ts';
import { date, expects, givenName, wholeNumber, word } from '../../shared/schema/schema-parts.ts';

/** The fields that the gateway reads. Other fields are for clients and other tools. */
export const operationSchema = z.object({
  operationId: givenName('text', /^.*$/s).optional(),
  deprecated: z.unknown().optional(),
  'x-deprecated-since': date.optional(),
  'x-deprecated-sunset': date.optional(),
  'x-deprecated-successor': z.string(expects('the operationId of another operation')).optional(),
  'x-after-sunset': word('gone', 'serve').optional(),
  ...deprecationShapes,
  'x-stability': word('experimental', 'beta').optional(),
  'x-upgrade': word('websocket').optional(),
  'x-cost': wholeNumber(0, 10_000).optional(),
  'x-upstream': z.unknown().optional(),
});

export type StatedOperation = z.output<typeof operationSchema>;

export const extensionNames = Object.keys(operationSchema.shape).filter((name) => name.startsWith('x-'));
export const deprecationNames = extensionNames.filter(
  (name) => /^x-(deprecated|after-sunset)/.test(name) || Object.hasOwn(deprecationShapes, name),
);

/** The successor is looked up later, after all operations are read. */
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
  return {
    sinceMs,
    sunsetMs,
    afterSunset: stated['x-after-sunset'] ?? 'gone',
    ...Object.assign({}, ...deprecationMembers.map((member) => member.compile(stated))),
  };
}

/** The operation of a configuration without an API document. It has every method and path below the base URL. */
export function anyOperation(upstream: string): Operation {
  return { id: 'any', method: anyMethod, template: '/*', upgrade: 'websocket', upstream };
}
