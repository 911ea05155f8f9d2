import { type IncomingMessage, METHODS } from 'node:http';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { offeredProtocols, secretsOffered } from '../../shared/web-socket-protocols.ts';
import { screenFields, token } from './screen-fields.ts';
import { refuseAsInvalid, type ScreenRefusal } from './screen-refusal.ts';
import { screenUri } from './screen-uri.ts';

/** The result for an accepted request, whose head can be forwarded unchanged. */
export interface ScreenedRequest {
  readonly kind: 'accepted';
  /** The raw path without the query, byte for byte. Its literal segments can be compared without decoding. */
  readonly path: string;
  /** The raw field value. For a WebSocket whose secret is in a subprotocol, the equivalent field value. */
  readonly authorization: string | undefined;
}

/**
 * Checks the head of a request by allowlist, on its raw octets, before any other station. An accepted head can be read in only one
 * way. The upstream gets the same octets, so it serves the operation that was found and charged here. The checks do not rely on
 * Node's parser.
 *
 * @param isHandshake whether it opens a WebSocket
 */
export function screenRequest(
  req: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders' | 'httpVersion'>,
  bounds: Bounds,
  isHandshake = false,
): ScreenedRequest | ScreenRefusal {
  if (!knownMethods.has(req.method ?? '')) return unknownMethod;
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0') return unknownVersion;
  const path = screenUri(req.url ?? '', bounds.targetBytesMax);
  if (typeof path !== 'string') return path;
  const fields = screenFields(req.rawHeaders, req.httpVersion, bounds.headersCountMax);
  if (fields.kind === 'refused') return fields;
  const { authorization } = fields;
  const offered = isHandshake ? offeredProtocols(req.rawHeaders) : [];
  // A list may have empty elements (RFC 9110 §5.6.1.2).
  if (!offered.every((protocol) => protocol === '' || token.test(protocol))) return noTokens;
  const secrets = secretsOffered(offered);
  if (secrets.length === 0) return { kind: 'accepted', path, authorization };
  if (secrets.length > 1 || authorization !== undefined) return secretsTwice;
  return { kind: 'accepted', path, authorization: `Bearer ${secrets[0]}` };
}

/** CONNECT asks for a tunnel past the limiter; TRACE would echo the fields that the gateway adds (RFC 9110 §9.3.8). */
const knownMethods: ReadonlySet<string> = new Set(
  METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE'),
);

const secretsTwice = refuseAsInvalid(
  'A WebSocket must present one secret: in Authorization or in one subprotocol.',
);

/** RFC 6455 §4.1. The text repeats no subprotocol, because one may contain a secret. */
const noTokens = refuseAsInvalid('Sec-WebSocket-Protocol must be a list of tokens.');

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
