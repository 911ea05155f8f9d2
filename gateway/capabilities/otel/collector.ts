import { Agent as HttpsAgent } from 'node:https';
import { http } from '../../shared/http/node-http.ts';
import { postRequest, requestedPauseMs } from '../../shared/http/post-request.ts';
import { createSharedLookup } from '../../shared/http/shared-lookup.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { OtelSettings } from './settings/schema.ts';

/**
 * The result of a POST to the collector. `later`: the same POST may succeed after `pauseMs`. No text contains a header field or the path of
 * the URL.
 */
export type Outcome =
  /** `rejected`: the number of spans or data points that the collector did not take. */
  | { readonly kind: 'accepted'; readonly rejected: number; readonly message: string }
  | { readonly kind: 'later'; readonly error: string; readonly pauseMs: number }
  | { readonly kind: 'refused'; readonly error: string }
  | { readonly kind: 'cancelled' };

export type Collector = ReturnType<typeof createCollector>;

/**
 * Posts to the collector. Traces and metrics have a connection each (OTLP 1.9 §OTLP/HTTP). The statuses 429, 502, 503 and 504 and a missing response are worth a
 * repetition, all others are not (§Failures).
 */
export function createCollector(bounds: Bounds) {
  const lookup = createSharedLookup(bounds);
  const plainAgent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  let secureAgent = new HttpsAgent({ keepAlive: true, maxSockets: 2 });
  let ca: string | undefined;

  /** A connection that trusts other authorities cannot be used again. */
  function agentsFor(wantedCa: string | undefined) {
    if (wantedCa !== ca) {
      secureAgent.destroy();
      secureAgent = new HttpsAgent({ keepAlive: true, maxSockets: 2, ca: wantedCa });
      ca = wantedCa;
    }
    return { http: plainAgent, https: secureAgent };
  }

  return {
    /** @param signal `traces` or `metrics`, the end of the URL */
    async post(
      otel: OtelSettings,
      signal: 'traces' | 'metrics',
      body: readonly Buffer[],
      cancel?: AbortSignal,
    ): Promise<Outcome> {
      const posted = await postRequest({
        url: `${otel.url}/v1/${signal}`,
        headers: { ...otel.headers, 'content-type': 'application/json' },
        body,
        agents: agentsFor(otel.ca),
        lookup,
        signal: cancel,
        timeoutMs: bounds.otelTimeoutMs,
        headBytesMax: bounds.otelResponseHeadBytesMax,
        bodyBytesMax: bounds.otelResponseBodyBytesMax,
        awaitsBody: true,
        lingerMs: 0,
        interimResponsesMax: bounds.interimResponsesMax,
      });
      if (posted.kind === 'cancelled') return posted;
      if (posted.kind === 'no_response') return { kind: 'later', error: posted.error, pauseMs: 0 };
      const { status, text = '' } = posted;
      if (status >= 200 && status <= 299) return { kind: 'accepted', ...partialSuccess(text) };
      const error =
        status >= 300 && status <= 399 ? `status ${status}: no redirect is followed` : `status ${status}`;
      if (!retried.has(status)) return { kind: 'refused', error };
      const pauseMs = Math.min(requestedPauseMs(posted, Date.now()), bounds.otelRetryAfterMaxMs);
      return { kind: 'later', error, pauseMs };
    },
  };
}

const retried: ReadonlySet<number> = new Set([429, 502, 503, 504]);

const messageCharsMax = 200;

/** Reads the response of a collector that took only a part of a POST (OTLP §Partial Success). Any other text means that it took all. */
function partialSuccess(text: string): { readonly rejected: number; readonly message: string } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { rejected: 0, message: '' };
  }
  const part = isMapping(parsed) && isMapping(parsed.partialSuccess) ? parsed.partialSuccess : {};
  const rejected = Number(part.rejectedSpans ?? part.rejectedDataPoints ?? 0);
  return {
    rejected: Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0,
    message: String(part.errorMessage ?? '').slice(0, messageCharsMax),
  };
}
