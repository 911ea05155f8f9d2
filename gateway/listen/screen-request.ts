import { type IncomingMessage, METHODS } from 'node:http';
import type { ScreenRefusal } from './rejection.ts';
import { screenFields } from './screen-fields.ts';
import { screenTarget } from './screen-uri.ts';

/** What the request path may rely on: everything else in the request's head is as harmless as it is forwarded. */
export interface ScreenedRequest {
  readonly kind: 'accepted';
  /** The raw path without the query, byte for byte; its literal segments can be compared as they are. */
  readonly path: string;
  /** The raw field value. */
  readonly authorization: string | undefined;
}

/**
 * Looks at a parsed request by allowlist on its raw bytes, before anything else does. What passes has one reading only,
 * so that what is matched and charged here is what the backend understands, and it is forwarded byte for byte. It
 * relies on nothing that Node's parser checks.
 */
export function screenRequest(
  req: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders' | 'httpVersion'>,
): ScreenedRequest | ScreenRefusal {
  if (!knownMethods.has(req.method ?? '')) return unknownMethod;
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0') return unknownVersion;
  const target = screenTarget(req.url ?? '');
  if (typeof target !== 'string') return target;
  const fields = screenFields(req.rawHeaders, req.httpVersion);
  if (fields.kind === 'refused') return fields;
  return { kind: 'accepted', path: target, authorization: fields.authorization };
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
