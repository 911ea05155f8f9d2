import {
  emptyBranch,
  findByPath,
  parseTemplate,
  type TemplateBranch,
  valueAt,
} from '../../shared/http/path-template.ts';
import { anyMethod, type Key, type Operation } from '../../shared/model.ts';
import { operationFields } from './operation-fields.ts';

/** An operation with texts that are made once and used for all its requests. */
export interface OfferedOperation {
  readonly operation: Operation;
  /** The header fields of the operation's responses, as a flat list of names and values. */
  readonly fields: readonly string[];
  /** The operation's member of the access line, as JSON text. */
  readonly logged: string;
}

interface OfferedPath {
  readonly byMethod: Map<string, OfferedOperation>;
  /** The value of `Allow` for this path (RFC 9110 §10.2.1). */
  allow: string;
}

/** All operations of the API document, organised for look-ups by path. */
export interface OperationTable {
  readonly literal: ReadonlyMap<string, OfferedPath>;
  readonly templated: TemplateBranch<OfferedPath>;
  /** The single operation for all paths that begin with `prefix`; undefined if there is an API document. */
  readonly any: { readonly prefix: string; readonly offered: OfferedOperation } | undefined;
}

/**
 * Builds the table that `routeRequest` reads.
 *
 * @param basePath the prefix of every operation
 * @param memberOf returns the member of the access line for an operation
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
      place = valueAt(templated, parseTemplate(path), newPath);
    } else {
      place = literal.get(path) ?? newPath();
      literal.set(path, place);
    }
    // If several templates match the same paths, the first template in the document is used.
    if (!place.byMethod.has(operation.method)) place.byMethod.set(operation.method, offered);
  }
  for (const offered of all) {
    const get = offered.byMethod.get('GET');
    if (get !== undefined && !offered.byMethod.has('HEAD')) offered.byMethod.set('HEAD', get);
    offered.allow = [...offered.byMethod.keys()].join(', ');
  }
  return { literal, templated, any };
}

export type Route =
  | { readonly kind: 'operation'; readonly offered: OfferedOperation }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'method_not_allowed'; readonly allow: string };

const notFound: Route = { kind: 'not_found' };

/**
 * Looks up an operation by method and path. The path has the form of `plainPath` in `screen-uri.ts`: only unreserved characters are decoded.
 * Literal segments take precedence over template parameters, from left to right (OpenAPI 3.1 §4.8.8). A parameter that matches the rest of
 * the path comes last. A path with GET also accepts HEAD.
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

/** A key or its plan may restrict the operations. */
export function mayCall({ operations }: Pick<Key, 'operations'>, { id }: Operation): boolean {
  return operations === undefined || operations.includes(id);
}

/** Whether the sunset of an operation (RFC 8594) has passed and its `afterSunset` is `gone`. */
export function isGone(operation: Operation, nowMs: number): boolean {
  const sunsetMs = operation.deprecation?.sunsetMs;
  return sunsetMs !== undefined && nowMs >= sunsetMs && operation.deprecation?.afterSunset === 'gone';
}
