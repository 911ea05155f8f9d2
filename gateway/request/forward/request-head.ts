import { protocolField, withoutOwnProtocols } from '../../shared/http/web-socket-protocols.ts';
import { hopByHopFields, namedInConnection } from './hop-by-hop.ts';

/** The fields of a request to a target, and the framing of its body. */
export interface RequestHead {
  /** The header fields, as a flat list. Transfer-Encoding is missing, because the transport adds it. Content-Length is included. */
  readonly fields: string[];
  /** The value of Content-Length, or 0 when the field is absent. */
  readonly contentLength: number;
  readonly chunked: boolean;
  readonly expectsContinue: boolean;
}

interface RequestHeadOptions {
  /** The client's header fields, as a flat list of names and values. */
  readonly rawHeaders: readonly string[];
  /** The header fields that the gateway adds, as a flat list of names and values. */
  readonly requestFields: readonly string[];
  readonly keepForwarded: boolean;
  /** The value of `Host`, which replaces the client's value. */
  readonly host: string;
  /** Further names of dropped fields, in lower case. */
  readonly replaced?: ReadonlySet<string> | undefined;
}

/**
 * Makes the header fields of the forwarded request. The function drops hop-by-hop fields, credentials, fields that could select
 * another operation, fields that the gateway sets itself, and WebSocket subprotocols that are meant for the gateway. The client's
 * `Via` lines are kept, and the gateway's `Via` line is added (RFC 9110 §5.3).
 */
export function requestHead({
  rawHeaders,
  requestFields,
  keepForwarded,
  host,
  replaced,
}: RequestHeadOptions): RequestHead {
  const fields: string[] = ['Host', host];
  const named = namedInConnection(rawHeaders);
  let contentLength = 0;
  let chunked = false;
  let expectsContinue = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    let value = rawHeaders[i + 1] ?? '';
    const lowerName = name.toLowerCase();
    switch (lowerName) {
      case 'host':
        continue;
      case 'content-length':
        contentLength = Number(value);
        break;
      case 'transfer-encoding':
        chunked = true;
        continue;
      case 'expect':
        expectsContinue = true;
        continue;
      case 'forwarded':
        if (!keepForwarded) continue;
        break;
      case protocolField:
        value = withoutOwnProtocols(value);
        if (value === '' || named?.has(lowerName)) continue;
        break;
      default:
        if (isDropped(lowerName) || isDisguised(lowerName) || named?.has(lowerName)) continue;
        if (replaced?.has(lowerName)) continue;
    }
    fields.push(name, value);
  }
  for (const part of requestFields) fields.push(part);
  return { fields, contentLength, chunked, expectsContinue };
}

/**
 * Fields with which a proxy overrides the method, path, host or client address of a request. Many backends obey these fields. A client
 * could use these fields to reach an operation that the gateway did not check, or to forge its address. The gateway itself sends only
 * `X-Forwarded-*`.
 */
const overridingFields = [
  // Method. Rack, Symfony and others read these fields. `x-http-method` is Microsoft's spelling, and `x-method-override` is IBM's.
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  // Path. IIS rewriting modules set these fields. Yii and unpatched versions of Zend and Symfony (CVE-2018-14773) read these fields.
  'x-original-url',
  'x-rewrite-url',
  // Path. The server gunicorn fills these WSGI variables from header fields that are spelled with an underscore.
  'script-name',
  'path-info',
  // Host. `isDropped` handles X-Forwarded-Host.
  'x-host',
  'x-original-host',
  'x-http-host-override',
  // Address. CDNs and load balancers set these fields. Go's chi and gin read `X-Real-IP` and `True-Client-IP`, and Rails reads `Client-IP`.
  'x-real-ip',
  'true-client-ip',
  'client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  // CGI turns `Proxy` into the variable HTTP_PROXY. This variable redirects the backend's own requests (httpoxy, CVE-2016-5385).
  'proxy',
];

const dropped: ReadonlySet<string> = new Set([
  ...hopByHopFields,
  ...overridingFields,
  'transfer-encoding',
  'proxy-authorization',
  'expect',
  'authorization',
  'x-request-id',
  'x-key-id',
  'x-plan',
]);

function isDropped(lowerName: string): boolean {
  return dropped.has(lowerName) || lowerName.startsWith('x-forwarded-');
}

const plainName = /^[a-z0-9-]+$/;
const framing: ReadonlySet<string> = new Set(['host', 'content-length']);

/**
 * Whether a backend could read the name as the name of a dropped field, or as `Host` or `Content-Length`. CGI and similar backends read
 * `X_Key.Id` as `X-Key-Id`.
 */
function isDisguised(lowerName: string): boolean {
  if (plainName.test(lowerName)) return false;
  const folded = lowerName.replaceAll(/[^a-z0-9]/g, '-');
  return isDropped(folded) || framing.has(folded);
}
