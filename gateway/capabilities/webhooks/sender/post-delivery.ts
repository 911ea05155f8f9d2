import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { http } from '../../../shared/http/node-http.ts';
import { startDeadline } from '../../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** The outcome of one POST. No error contains a secret, or the path of the URL. */
export type Attempt =
  | { readonly kind: 'response'; readonly status: number; readonly retryAfter: string | undefined }
  | { readonly kind: 'no_response'; readonly error: string }
  | { readonly kind: 'cancelled' };

/** Each attempt has a connection of its own, so that no octet of a response reaches a later attempt. TLS sessions are resumed. */
const agents = {
  http: new http.Agent({ keepAlive: false }),
  https: new HttpsAgent({ keepAlive: false }),
};

/**
 * Posts a delivery. The attempt ends with the head of the response, and follows no redirect. The size of the response is limited, because a
 * receiver may be hostile. `node:http` reports interim responses, so the attempt can end after too many of them. `fetch` would read interim
 * responses until the timeout, and would occupy the event loop.
 *
 * @param options.headers the signature (`signDelivery`)
 */
export function postDelivery({
  url,
  headers,
  body,
  lookup,
  signal,
  bounds,
}: {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Looks up the host of the URL. */
  readonly lookup: LookupFunction;
  /** Cancels the attempt. */
  readonly signal?: AbortSignal | undefined;
  readonly bounds: Bounds;
}): Promise<Attempt> {
  const { webhookTimeoutMs, webhookResponseHeadBytesMax, interimResponsesMax } = bounds;
  const fields = { ...headers, 'content-type': 'application/json', 'user-agent': 'Tollgate' };
  const attempt = new Promise<Attempt>((resolve) => {
    const isSecure = new URL(url).protocol === 'https:';
    const options = {
      method: 'POST',
      headers: { ...fields, 'content-length': Buffer.byteLength(body) },
      agent: isSecure ? agents.https : agents.http,
      lookup,
      maxHeaderSize: webhookResponseHeadBytesMax,
      signal,
    };
    const request = isSecure ? httpsRequest(url, options) : http.request(url, options);
    let interim = 0;
    const stopTimer = startDeadline(webhookTimeoutMs, () =>
      fail(`no response within ${webhookTimeoutMs / 1_000} s`),
    );

    function fail(error: string): void {
      stopTimer();
      resolve(signal?.aborted ? { kind: 'cancelled' } : { kind: 'no_response', error });
      request.destroy();
    }

    request.on('information', () => {
      interim += 1;
      if (interim > interimResponsesMax) fail('too many interim responses');
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      fail('a response with status 101');
    });
    request.on('error', (error) => fail(textOf(error)));
    request.on('close', () => fail('the connection was closed before a response'));
    request.on('response', (response) => {
      stopTimer();
      const { statusCode: status = 0, headers: responseHeaders } = response;
      resolve({ kind: 'response', status, retryAfter: responseHeaders['retry-after'] });
      dropBody(response, request, bounds);
    });
    request.end(body);
  });
  // A URL that Node refuses counts as a failed attempt.
  return attempt.catch((error: Error) => ({ kind: 'no_response', error: textOf(error) }));
}

/** Reads a short body to its end, because some receivers log an error if the connection is closed earlier. */
function dropBody(
  response: IncomingMessage,
  request: ClientRequest,
  { webhookResponseBodyBytesMax, webhookLingerTimeoutMs }: Bounds,
): void {
  let bytes = 0;
  const timer = setTimeout(() => request.destroy(), webhookLingerTimeoutMs).unref();
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > webhookResponseBodyBytesMax) request.destroy();
  });
  response.on('error', () => {});
  response.on('close', () => clearTimeout(timer));
}

/** Returns why an attempt failed. The message of an OpenSSL error is a long trace with a short reason in it. */
function textOf(error: Error): string {
  // Node tries all addresses of a host. If all of them fail, the message is empty.
  const [first] = error instanceof AggregateError ? error.errors : [];
  if (first instanceof Error) return textOf(first);
  const reason = /:SSL routines:[^:]*:([^:]+)/.exec(error.message)?.[1];
  return reason === undefined ? error.message : `TLS: ${reason}`;
}
