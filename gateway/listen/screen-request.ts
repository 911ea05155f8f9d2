import { type IncomingMessage, METHODS } from 'node:http';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { screenFields } from './screen-fields.ts';
import type { ScreenRefusal } from './screen-refusal.ts';
import { screenUri } from './screen-uri.ts';

export type ScreenBounds = Pick<Bounds, 'targetBytesMax' | 'headersCountMax'>;

/** What the request path learns of an accepted request. Everything else in its head is safe to forward as it came. */
export interface ScreenedRequest {
  readonly kind: 'accepted';
  /** The raw path without the query, byte for byte; its literal segments can be compared as they are. */
  readonly path: string;
  /** The raw field value. */
  readonly authorization: string | undefined;
}

/**
 * Checks the head of a request by allowlist, on its raw bytes, before any other station sees it. An accepted head can be
 * read in one way only: the operation that is matched and charged here is the one that the upstream understands, since
 * the same bytes are forwarded. Nothing that Node's parser checks is relied on.
 */
export function screenRequest(
  req: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders' | 'httpVersion'>,
  bounds: ScreenBounds,
): ScreenedRequest | ScreenRefusal {
  if (!knownMethods.has(req.method ?? '')) return unknownMethod;
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0') return unknownVersion;
  const path = screenUri(req.url ?? '', bounds.targetBytesMax);
  if (typeof path !== 'string') return path;
  const fields = screenFields(req.rawHeaders, req.httpVersion, bounds.headersCountMax);
  if (fields.kind === 'refused') return fields;
  return { kind: 'accepted', path, authorization: fields.authorization };
}

/** CONNECT asks for a tunnel past the limiter; TRACE would echo the fields that the gateway adds (RFC 9110 §9.3.8). */
const knownMethods: ReadonlySet<string> = new Set(
  METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE'),
);

const unknownMethod: ScreenRefusal = {
  kind: 'refused',
  code: 'method_not_implemented',
  message: 'The gateway does not implement this method.',
};

const unknownVersion: ScreenRefusal = {
  kind: 'refused',
  code: 'invalid_request',
  message: 'The HTTP version must be 1.1 or 1.0.',
};
