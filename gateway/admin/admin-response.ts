import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '../shared/errors.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { awayText } from './words/list.js';

export const apiPrefix = '/api/v1';

const onlyInRedis = ', and only Redis has this data; retry later.';

/** A response of the admin listener. `commonFields` are added to every response. */
export interface AdminResponse {
  readonly status: number;
  /** A buffer when the body is compressed. */
  readonly body: string | Buffer;
  /** Default: JSON. */
  readonly contentType?: string;
  /** Header fields of this response only, such as `Allow`. These fields replace common fields of the same name. */
  readonly fields?: Readonly<Record<string, string>> | undefined;
  /** What an error says after "Redis does not reply", so that the API can say since when. */
  readonly withoutRedis?: string;
  /** Called when the response is written, or when the client has disconnected. */
  readonly onWritten?: () => void;
}

/**
 * The errors of the public listener, and further errors of the admin listener. Some codes of the public listener have a
 * different message on the admin listener.
 */
const catalogue = {
  ...errors,
  missing_token: {
    status: 401,
    message: 'A token is required: send "Authorization: Bearer <TOKEN>".',
  },
  invalid_token: { status: 401, message: 'The token is not valid.' },
  no_tokens: {
    status: 403,
    message:
      'No token is configured, so the admin API refuses all requests. "tollgate admin token --name NAME --may read" makes a token and prints the entry for "admin.tokens".',
  },
  read_only_token: { status: 403, message: 'The token may only read.' },
  foreign_origin: { status: 403, message: 'Pages of another origin may not use the admin API.' },
  conflict: { status: 409, message: 'The change conflicts with the present state.' },
  precondition_failed: {
    status: 412,
    message: 'The key has changed since you read it. Read the key again before you change it.',
  },
  unsupported_media_type: {
    status: 415,
    message: 'The request body must be JSON: send "Content-Type: application/json".',
  },
  unknown_host: {
    status: 421,
    message:
      'The name in Host is not allowed: use an address or localhost, or add the name to "admin.hosts".',
  },
  rate_limited: {
    status: 429,
    message: 'Too many wrong tokens came from this address; retry after the time in the Retry-After header.',
  },
  store_unavailable: {
    status: 503,
    message: `${awayText({})}${onlyInRedis}`,
  },
  busy: {
    status: 503,
    message: 'Too many requests are under way, or this request took too long; retry later.',
  },
} as const satisfies Record<string, { readonly status: number; readonly message: string }>;

export type AdminErrorCode = keyof typeof catalogue;

/**
 * An error with the same form of body as on the public listener. @param message public text; default: the message of
 * the code in `catalogue`
 */
export function errorResponse(
  code: AdminErrorCode,
  message: string = catalogue[code].message,
  fields: Readonly<Record<string, string>> = {},
): AdminResponse {
  const { status } = catalogue[code];
  return { status, body: JSON.stringify({ code, message, status }), fields };
}

export function jsonResponse(body: object): AdminResponse {
  return { status: 200, body: JSON.stringify(body) };
}

/** @param rest names what only Redis has @param cause the beginning of the message */
export function storeUnavailable(rest = onlyInRedis, cause = awayText({})): AdminResponse {
  const error = errorResponse('store_unavailable', cause + rest, { 'Retry-After': '1' });
  return { ...error, withoutRedis: rest };
}

/** For a change that was not tried, because the store did not reply. */
export function nothingChanged(): AdminResponse {
  return storeUnavailable('. Nothing was changed; retry later.');
}

/** @param body undefined when the store did not reply */
export function foundResponse(body: object | undefined): AdminResponse {
  return body === undefined ? storeUnavailable() : jsonResponse(body);
}

function commonFields(requestId: string, { status, body, contentType, fields }: AdminResponse) {
  // A 304 has no content, so `Content-Type` and `Content-Length` would describe the copy in the client's cache (RFC
  // 9110 §15.4.5). A 204 may not have a Content-Length (RFC 9110 §8.6).
  const content = status !== 304 &&
    status !== 204 && {
      'Content-Type': contentType ?? 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
    };
  return {
    ...content,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
    ...fields,
  };
}

/**
 * Writes a large response piece by piece. The kernel copies the data of each write synchronously, which delays other
 * requests.
 */
export async function writeResponse(
  res: ServerResponse,
  requestId: string,
  response: AdminResponse,
  bounds: Bounds,
): Promise<void> {
  res.writeHead(response.status, commonFields(requestId, response));
  if (response.body.length < bounds.adminLargeResponseBytes || res.req.method === 'HEAD') {
    res.end(response.body);
  } else {
    const body = typeof response.body === 'string' ? Buffer.from(response.body) : response.body;
    for (let from = 0; from < body.length && !res.destroyed; from += bounds.adminPieceBytes) {
      const piece = body.subarray(from, from + bounds.adminPieceBytes);
      if (!res.write(piece)) await drained(res);
      await sleep(bounds.adminPiecePauseMs);
    }
    res.end();
  }
  response.onWritten?.();
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      res.off('drain', end).off('close', end);
      resolve();
    };
    res.on('drain', end).on('close', end);
  });
}

/** Returns the octets of an error response. Node makes no response object for a request that its parser refused. */
export function rawResponse(requestId: string, response: AdminResponse): string {
  const fields = Object.entries(commonFields(requestId, response));
  const lines = fields.map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${response.status} `, ...lines, 'Connection: close', '', String(response.body)].join(
    '\r\n',
  );
}
