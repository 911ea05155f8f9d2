import type { Upstream } from '../../shared/model.ts';
import { type OfferedOperation, type OperationTable, routeRequest } from './operation-table.ts';

interface EscapedPath {
  readonly method: string;
  /** The path as the client sent it. */
  readonly path: string;
  /** The path with decoded unreserved characters, by which the operation was found. */
  readonly plainPath: string;
}

/** The message for the client, and the cause for the log. */
interface EscapeFault {
  readonly message: string;
  readonly cause: string;
}

/**
 * Returns the reason why a request that matches an operation must not be forwarded because of the escapes of its path; undefined if there is
 * no reason. The upstream must serve the operation that the gateway has found and charged, whether or not it decodes the escapes.
 */
export function escapeFault(
  table: OperationTable,
  { operation }: OfferedOperation,
  { method, path, plainPath }: EscapedPath,
  upstreams: readonly Pick<Upstream, 'name' | 'encodedSlashes'>[],
): EscapeFault | undefined {
  if (!path.includes('%')) return undefined;
  if (escapedSlash.test(path)) {
    const upstream = upstreams.find(({ name }) => name === operation.upstream);
    if (upstream?.encodedSlashes !== 'forward') {
      const cause = `the upstream \`${operation.upstream}\` has encodedSlashes: refuse`;
      return { message: 'The path must not have escaped slashes.', cause };
    }
  }
  if (path === plainPath) return undefined;
  // An upstream that looks for the operation before it decodes the path reads `/pets/%6Dine` as `/pets/{petId}`, not as `/pets/mine`.
  const undecoded = routeRequest(table, method, path);
  return undecoded.kind === 'operation' && undecoded.offered.operation !== operation ? ambiguous : undefined;
}

const ambiguous: EscapeFault = {
  message: 'The path matches another operation if its escapes are not decoded.',
  cause: 'the path matches another operation if its escapes are not decoded',
};

const escapedSlash = /%2f/i;
