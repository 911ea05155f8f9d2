import type { Agent, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { startDeadline } from '../structures/within-deadline.ts';
import { http } from './node-http.ts';

/** The outcome of one POST. No error contains a part of the request, or the path of the URL. */
export type Posted =
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly retryAfter: string | undefined;
      /** The beginning of the body, if `awaitsBody` is set. */
      readonly text?: string | undefined;
    }
  | { readonly kind: 'no_response'; readonly error: string }
  | { readonly kind: 'cancelled' };

export interface PostOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | readonly Buffer[];
  /** The agents by the protocol of the URL. */
  readonly agents: { readonly http: Agent; readonly https: Agent };
  readonly lookup?: LookupFunction | undefined;
  /** Cancels the request. */
  readonly signal?: AbortSignal | undefined;
  /** From the start to the end of the response head, or of the body if `awaitsBody` is set. */
  readonly timeoutMs: number;
  readonly headBytesMax: number;
  /** The connection is closed after this part of the body. */
  readonly bodyBytesMax: number;
  /** Whether the request ends with the body of the response, and not with its head. */
  readonly awaitsBody: boolean;
  /** How long a body is read that is not awaited. Some servers log an error if the connection is closed earlier. */
  readonly lingerMs: number;
  readonly interimResponsesMax: number;
}

/**
 * Posts to a server that may be hostile: the size of the response is limited, and no redirect is followed. `node:http` reports interim
 * responses, so the request can end after too many of them. `fetch` would read interim responses until the timeout, and would occupy the
 * event loop.
 */
export function postRequest(options: PostOptions): Promise<Posted> {
  const { url, body, signal, timeoutMs } = options;
  const posted = new Promise<Posted>((resolve) => {
    const isSecure = new URL(url).protocol === 'https:';
    const pieces = typeof body === 'string' ? [Buffer.from(body)] : body;
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const asNode = {
      method: 'POST',
      headers: { ...options.headers, 'user-agent': 'Tollgate', 'content-length': length },
      agent: isSecure ? options.agents.https : options.agents.http,
      lookup: options.lookup,
      maxHeaderSize: options.headBytesMax,
      signal,
    };
    const request = isSecure ? httpsRequest(url, asNode) : http.request(url, asNode);
    let interim = 0;
    /** Resolves with the response that has arrived so far. */
    let endBody: (() => void) | undefined;
    const stopTimer = startDeadline(timeoutMs, () => fail(`no response within ${timeoutMs / 1_000} s`));

    function fail(error: string): void {
      stopTimer();
      endBody?.();
      resolve(signal?.aborted ? { kind: 'cancelled' } : { kind: 'no_response', error });
      request.destroy();
    }

    request.on('information', () => {
      interim += 1;
      if (interim > options.interimResponsesMax) fail('too many interim responses');
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      fail('a response with status 101');
    });
    request.on('error', (error) => fail(textOf(error)));
    request.on('close', () => fail('the connection was closed before a response'));
    request.on('response', (response) => {
      const { statusCode: status = 0, headers } = response;
      const read = readBody(response, options, () => request.destroy());
      const end = () => {
        stopTimer();
        const text = options.awaitsBody ? read.text() : undefined;
        resolve({ kind: 'response', status, retryAfter: headers['retry-after'], text });
      };
      if (!options.awaitsBody) {
        end();
        return;
      }
      endBody = end;
      read.whenEnded(end);
    });
    for (const piece of pieces.slice(0, -1)) request.write(piece);
    request.end(pieces.at(-1));
  });
  // A URL that Node refuses counts as a failed request.
  return posted.catch((error: Error) => ({ kind: 'no_response', error: textOf(error) }));
}

/**
 * The pause that a busy server requests (RFC 9110 §10.2.3); 0: none.
 *
 * @param nowMs epoch ms
 */
export function requestedPauseMs(
  { status, retryAfter = '' }: Pick<Extract<Posted, { kind: 'response' }>, 'status' | 'retryAfter'>,
  nowMs: number,
): number {
  if (status !== 429 && status !== 503) return 0;
  const pauseMs = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - nowMs;
  return Math.max(0, pauseMs || 0);
}

/** Reads a bounded part of a body. @param close closes the connection */
function readBody(
  response: IncomingMessage,
  { bodyBytesMax, awaitsBody, lingerMs }: PostOptions,
  close: () => void,
) {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const timer = awaitsBody ? undefined : setTimeout(close, lingerMs).unref();
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) close();
    else if (awaitsBody) chunks.push(chunk);
  });
  response.on('error', () => {});
  response.on('close', () => clearTimeout(timer));
  return {
    text: () => Buffer.concat(chunks).toString(),
    whenEnded: (end: () => void) => response.on('close', end),
  };
}

/** Returns why a request failed. The message of an OpenSSL error is a long trace with a short reason in it. */
function textOf(error: Error): string {
  // Node tries all addresses of a host. If all of them fail, the message is empty.
  const [first] = error instanceof AggregateError ? error.errors : [];
  if (first instanceof Error) return textOf(first);
  const reason = /:SSL routines:[^:]*:([^:]+)/.exec(error.message)?.[1];
  return reason === undefined ? error.message : `TLS: ${reason}`;
}
