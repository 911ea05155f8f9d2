import type { IncomingMessage } from 'node:http';
import { tokenForm } from '../../shared/http/field-grammar.ts';
import { http } from '../../shared/http/node-http.ts';
import { offeredProtocols, secretsOffered } from '../../shared/http/web-socket-protocols.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { screenFields } from './screen-fields.ts';
import { refuseAsInvalid, type ScreenRefusal } from './screen-refusal.ts';
import { type ScreenedUri, screenUri } from './screen-uri.ts';

/** The result for an accepted request, whose head can be forwarded unchanged. */
export interface ScreenedRequest extends ScreenedUri {
  /** The host and port that the client addresses: from an absolute form, or from `Host`. */
  readonly host: string;
  /** The raw `Authorization` field. A secret in a WebSocket subprotocol is converted to this field. */
  readonly authorization: string | undefined;
}

interface ScreenOptions {
  readonly bounds: Bounds;
  /** Whether the request opens a WebSocket. */
  readonly isHandshake: boolean;
  /** Whether the client's connection uses TLS, here or at a trusted proxy. */
  readonly isSecure: boolean;
}

/**
 * Checks the raw head of a request by allowlist, before any other step. An accepted head is unambiguous. The upstream gets the same octets,
 * so it serves the same operation that the gateway has found and charged. The checks do not rely on Node's parser.
 */
export function screenRequest(
  req: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders' | 'httpVersion'>,
  { bounds, isHandshake, isSecure }: ScreenOptions,
): ScreenedRequest | ScreenRefusal {
  const { method = '', url = '', rawHeaders, httpVersion } = req;
  if (!knownMethods.has(method)) return unknownMethod;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return unknownVersion;
  const uri = screenUri(url, method, bounds.targetBytesMax);
  if (uri.kind === 'refused') return uri;
  if (uri.needsTls && !isSecure) return lacksTls;
  const fields = screenFields(rawHeaders, httpVersion, bounds.headersCountMax);
  if (fields.kind === 'refused') return fields;
  const { authorization } = fields;
  const screened: ScreenedRequest = { ...uri, host: uri.host ?? fields.host, authorization };
  const offered = isHandshake ? offeredProtocols(rawHeaders) : [];
  // A list in a header field may have empty elements (RFC 9110 §5.6.1.2).
  if (!offered.every((protocol) => protocol === '' || tokenForm.test(protocol))) return noTokens;
  const secrets = secretsOffered(offered);
  if (secrets.length === 0) return screened;
  if (secrets.length > 1 || authorization !== undefined) return secretsTwice;
  return { ...screened, authorization: `Bearer ${secrets[0]}` };
}

/**
 * All methods that Node supports, except CONNECT and TRACE. CONNECT would bypass the limiter. TRACE would reveal the fields that the
 * gateway adds to a request.
 */
const knownMethods: ReadonlySet<string> = new Set(
  http.METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE'),
);

const secretsTwice = refuseAsInvalid(
  'A WebSocket must present one secret: in Authorization or in one subprotocol.',
);

/** The refusal of malformed subprotocols (RFC 6455 §4.1). The text quotes no subprotocol, because it may contain a secret. */
const noTokens = refuseAsInvalid('Sec-WebSocket-Protocol must be a list of tokens.');

/** The refusal of an `https` target on a connection without TLS (RFC 9110 §7.4). */
const lacksTls = refuseAsInvalid(
  'The request target has the scheme https, but the connection does not use TLS.',
);

const unknownMethod: ScreenRefusal = {
  kind: 'refused',
  code: 'method_not_implemented',
  message: 'The gateway does not implement this method.',
};

const unknownVersion = refuseAsInvalid('The HTTP version must be 1.1 or 1.0.');
