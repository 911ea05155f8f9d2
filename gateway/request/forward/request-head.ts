import { protocolField, withoutOwnProtocols } from '../../shared/web-socket-protocols.ts';
import { hopByHopFields, namedInConnection } from './hop-by-hop.ts';

/** The fields of a request to a target, and the framing of its body. */
export interface RequestHead {
  /** Flat name, value, … with Content-Length and without Transfer-Encoding, which the transport adds. */
  readonly fields: string[];
  /** 0 without a Content-Length. */
  readonly contentLength: number;
  readonly chunked: boolean;
  readonly expectsContinue: boolean;
}

interface RequestHeadOptions {
  /** Flat name, value, … as the client sent them. */
  readonly rawHeaders: readonly string[];
  /** Flat name, value, … that the gateway adds. */
  readonly requestFields: readonly string[];
  readonly keepForwarded: boolean;
  /** Replaces the client's `Host`; undefined to keep it. */
  readonly host: string | undefined;
}

/**
 * Makes the fields of the forwarded request. Drops hop-by-hop fields, credentials, fields by which a client could reach another
 * operation, fields that the gateway sets itself, and subprotocols for the gateway. A client's `Via` is kept, and the gateway's is
 * added as a further line of the same list (RFC 9110 §5.3).
 */
export function requestHead({
  rawHeaders,
  requestFields,
  keepForwarded,
  host,
}: RequestHeadOptions): RequestHead {
  const fields: string[] = host === undefined ? [] : ['Host', host];
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
        if (host !== undefined) continue;
        break;
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
    }
    fields.push(name, value);
  }
  for (const part of requestFields) fields.push(part);
  return { fields, contentLength, chunked, expectsContinue };
}

/**
 * Fields with which a proxy overrides the method, path, host or client address of a request. Backends obey them. A client that sends
 * one could reach an operation that the gateway did not check, or pose as another address. The gateway itself uses `X-Forwarded-*`.
 */
const overridingFields = [
  // Method: read by Rack, Symfony and others. The second and third spelling are Microsoft's and IBM's.
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  // Path: set by rewriting modules of IIS, read by Yii, and by Zend and Symfony until CVE-2018-14773.
  'x-original-url',
  'x-rewrite-url',
  // Path: gunicorn takes these WSGI variables from fields, spelled with an underscore.
  'script-name',
  'path-info',
  // Host, besides X-Forwarded-Host.
  'x-host',
  'x-original-host',
  'x-http-host-override',
  // Address: read by Go's chi and gin (the first two), Rails (`Client-IP`) and libraries; set by CDNs and load balancers.
  'x-real-ip',
  'true-client-ip',
  'client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
  // Under CGI it becomes HTTP_PROXY, the proxy of the backend's own requests (httpoxy, CVE-2016-5385 and others).
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
 * Whether a backend could take the name for a dropped name or for a name that frames the body. Backends that map names as in CGI read
 * `X_Key.Id` as `X-Key-Id`.
 */
function isDisguised(lowerName: string): boolean {
  if (plainName.test(lowerName)) return false;
  const folded = lowerName.replaceAll(/[^a-z0-9]/g, '-');
  return isDropped(folded) || framing.has(folded);
}
