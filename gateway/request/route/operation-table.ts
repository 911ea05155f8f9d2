import type { Key, Operation } from '../../shared/model.ts';
import { operationFields } from './operation-fields.ts';

/** An operation with the texts that are made once for all its requests. */
export interface OfferedOperation {
  readonly operation: Operation;
  /** The header fields of its responses, flat name, value, … */
  readonly fields: readonly string[];
  /** The member of the access line. */
  readonly logged: string;
}

/** A path template with its operations by method. */
interface OfferedPath {
  /** Literal segments as text, parameters as undefined. */
  readonly segments: readonly (string | undefined)[];
  readonly byMethod: Map<string, OfferedOperation>;
  /** The value of `Allow` (RFC 9110 §10.2.1). */
  allow: string;
}

/** The operations of the API document, for look-ups by raw path. */
export interface OperationTable {
  readonly literal: ReadonlyMap<string, OfferedPath>;
  readonly templated: readonly OfferedPath[];
}

/**
 * Builds the table that `routeRequest` reads.
 *
 * @param basePath the prefix of every operation
 * @param memberOf makes an operation's member of the access line
 */
export function createOperationTable(
  operations: readonly Operation[],
  basePath: string,
  memberOf: (operation: Operation) => string,
): OperationTable {
  const byPath = new Map<string, OfferedPath>();
  for (const operation of operations) {
    const path = basePath + operation.template;
    const offered = byPath.get(path) ?? { segments: segmentsOf(path), byMethod: new Map(), allow: '' };
    offered.byMethod.set(operation.method, {
      operation,
      fields: operationFields(operation, basePath),
      logged: memberOf(operation),
    });
    byPath.set(path, offered);
  }
  for (const offered of byPath.values()) {
    const get = offered.byMethod.get('GET');
    if (get !== undefined) offered.byMethod.set('HEAD', get);
    offered.allow = [...offered.byMethod.keys()].join(', ');
  }

  const isTemplated = (offered: OfferedPath) => offered.segments.includes(undefined);
  return {
    literal: new Map([...byPath].filter(([, offered]) => !isTemplated(offered))),
    templated: [...byPath.values()].filter(isTemplated),
  };
}

function segmentsOf(path: string): (string | undefined)[] {
  return path.split('/').map((segment) => (segment.startsWith('{') ? undefined : segment));
}

/** The operation of a method and a raw path, or the reason why there is none. */
export type Route =
  | { readonly kind: 'operation'; readonly offered: OfferedOperation }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'method_not_allowed'; readonly allow: string };

const notFound: Route = { kind: 'not_found' };

/**
 * Looks up an operation by the raw path, byte for byte, without decoding or normalising it, because the upstream gets the same
 * octets. Literal paths take precedence over templated paths (OpenAPI 3.1 §4.8.8). HEAD is served wherever GET is.
 */
export function routeRequest(table: OperationTable, method: string, path: string): Route {
  const offeredPath = table.literal.get(path) ?? findTemplated(table.templated, path);
  if (offeredPath === undefined) return notFound;
  const offered = offeredPath.byMethod.get(method);
  if (offered === undefined) return { kind: 'method_not_allowed', allow: offeredPath.allow };
  return { kind: 'operation', offered };
}

function findTemplated(templated: readonly OfferedPath[], path: string): OfferedPath | undefined {
  if (templated.length === 0) return undefined;
  const segments = path.split('/');
  return templated.find(
    (offered) =>
      offered.segments.length === segments.length &&
      offered.segments.every((wanted, i) =>
        wanted === undefined ? segments[i] !== '' : wanted === segments[i],
      ),
  );
}

/** Whether the scope of a key (its own, or its plan's) includes the operation. */
export function mayCall({ operations }: Pick<Key, 'operations'>, { id }: Operation): boolean {
  return operations === undefined || operations.includes(id);
}

/** Whether the sunset of an operation has passed (RFC 8594), and the document ends its service then. */
export function isGone(operation: Operation, nowMs: number): boolean {
  const sunsetMs = operation.deprecation?.sunsetMs;
  return sunsetMs !== undefined && nowMs >= sunsetMs && operation.deprecation?.afterSunset === 'gone';
}
