import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { http } from '../../../shared/http/node-http.ts';
import { type Posted, postRequest } from '../../../shared/http/post-request.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** The outcome of one POST. No error contains a secret, or the path of the URL. */
export type Attempt = Posted;

/** Each attempt has a connection of its own, so that no octet of a response reaches a later attempt. TLS sessions are resumed. */
const agents = {
  http: new http.Agent({ keepAlive: false }),
  https: new HttpsAgent({ keepAlive: false }),
};

/**
 * Posts a delivery. The attempt ends with the head of the response.
 *
 * @param options.headers the signature (`signDelivery`)
 */
export function postDelivery({
  headers,
  bounds,
  ...options
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
  return postRequest({
    ...options,
    headers: { ...headers, 'content-type': 'application/json' },
    agents,
    timeoutMs: bounds.webhookTimeoutMs,
    headBytesMax: bounds.webhookResponseHeadBytesMax,
    bodyBytesMax: bounds.webhookResponseBodyBytesMax,
    awaitsBody: false,
    lingerMs: bounds.webhookLingerTimeoutMs,
    interimResponsesMax: bounds.interimResponsesMax,
  });
}
