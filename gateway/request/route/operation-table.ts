import { anyMethod, type Key, type Operation } from '../../shared/model.ts';
import {
  branchAt,
  emptyBranch,
  findByPath,
  segmentsOf,
  type TemplateBranch,
} from '../../shared/path-template.ts';
import { operationFields } from './operation-fields.ts';

/** An operation with the texts that are made once for all its requests. */
export interface OfferedOperation {
  readonly operation: Operation;
  /** The header fields of its responses, flat name, value, … */
  readonly fields: readonly string[];
  /** The member of the access line. */
  readonly logged: string;
}

/** The operations of a path by method. */
interface OfferedPath {
  readonly byMethod: Map<string, OfferedOperation>;
  /** The value of `Allow` (RFC 9110 §10.2.1). */
  allow: string;
}

/** The operations of the API document, for look-ups by raw path. */
export interface OperationTable {
  readonly literal: ReadonlyMap<string, OfferedPath>;
  readonly templated: TemplateBranch<OfferedPath>;
  /** Without an API document: the one operation of every path that begins with the prefix. */
  readonly any: { readonly prefix: string; readonly offered: OfferedOperation } | undefined;
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
  const literal = new Map<string, OfferedPath>();
  const templated = emptyBranch<OfferedPath>();
  const all: OfferedPath[] = [];
  let any: OperationTable['any'];
  const newPath = (): OfferedPath => {
    const offered = { byMethod: new Map(), allow: '' };
    all.push(offered);
    return offered;
  };
  for (const operation of operations) {
    const fields = operationFields(operation, basePath);
    const offered: OfferedOperation = { operation, fields, logged: memberOf(operation) };
    if (operation.method === anyMethod) {
      any = { prefix: `${basePath}/`, offered };
      continue;
    }
    const path = basePath + operation.template;
    let place: OfferedPath | undefined;
    if (path.includes('{')) {
      const branch = branchAt(templated, segmentsOf(path));
      branch.value ??= newPath();
      place = branch.value;
    } else {
      place = literal.get(path) ?? newPath();
      literal.set(path, place);
    }
    // Of templates that match the same paths, the first one in the document is served.
    if (!place.byMethod.has(operation.method)) place.byMethod.set(operation.method, offered);
  }
  for (const offered of all) {
    const get = offered.byMethod.get('GET');
    if (get !== undefined && !offered.byMethod.has('HEAD')) offered.byMethod.set('HEAD', get);
    offered.allow = [...offered.byMethod.keys()].join(', ');
  }
  return { literal, templated, any };
}

/** The operation of a method and a raw path, or the reason why there is none. */
export type Route =
  | { readonly kind: 'operation'; readonly offered: OfferedOperation }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'method_not_allowed'; readonly allow: string };

const notFound: Route = { kind: 'not_found' };

/**
 * Looks up an operation by the raw path, byte for byte, without decoding or normalising it, because the upstream gets the same
 * octets. Concrete segments take precedence over templated ones, from left to right (OpenAPI 3.1 §4.8.8). HEAD is served wherever
 * GET is.
 */
export function routeRequest(table: OperationTable, method: string, path: string): Route {
  const { any } = table;
  if (any !== undefined) {
    return path.startsWith(any.prefix) ? { kind: 'operation', offered: any.offered } : notFound;
  }
  const offeredPath = table.literal.get(path) ?? findByPath(table.templated, path.split('/'));
  if (offeredPath === undefined) return notFound;
  const offered = offeredPath.byMethod.get(method);
  if (offered === undefined) return { kind: 'method_not_allowed', allow: offeredPath.allow };
  return { kind: 'operation', offered };
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
