import type { TraceParent } from '../../../observe/trace-id.ts';
import { type Exchange, failureOf } from '../../../request/exchange.ts';
import { addressGroup } from '../../../shared/addresses/address-group.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { PerSecond } from './per-second.ts';

type SamplerBounds = Pick<
  Bounds,
  'otelFlaggedPerSecondMax' | 'otelChosenPerSecondMax' | 'otelKeptPerSecondMax' | 'otelKeptPerHolderMax'
>;

/** Why a request is recorded that was not sampled. */
export type Kept = 'refused' | 'failed' | 'slow';

export type Sampler = ReturnType<typeof createSampler>;

/**
 * Decides which requests are recorded. The trace id decides, because its last 56 bits are random (W3C Trace Context Level 2 §Randomness of
 * trace-id). An id is sampled if these bits are at or above a threshold, as OpenTelemetry's "TraceState: Probability Sampling" describes.
 * Services that decide in this way record the same traces.
 *
 * A client can choose its trace id and the flag `sampled`, so both are bounded. Beyond the bounds, the id of the request decides, which no
 * client can choose. A flood therefore takes no traces from others.
 */
export function createSampler(bounds: SamplerBounds) {
  const flagged = new PerSecond();
  const chosen = new PerSecond();
  const kept: Readonly<Record<Kept, PerSecond>> = {
    refused: new PerSecond(),
    failed: new PerSecond(),
    slow: new PerSecond(),
  };

  return {
    /**
     * @param parent the client's `traceparent`, if it is valid
     * @param share from 0 to 1
     */
    samples(
      { id, origin, startedMs }: Pick<Exchange, 'id' | 'origin' | 'startedMs'>,
      parent: TraceParent | undefined,
      share: number,
    ): boolean {
      if (share >= 1) return true;
      if (parent === undefined) return isSampled(randomnessOf(id), share);
      if (
        (parent.flags & 1) === 1 &&
        origin?.trustedPeer &&
        flagged.take(startedMs, () => bounds.otelFlaggedPerSecondMax)
      )
        return true;
      const expected = (asked: number) => bounds.otelChosenPerSecondMax + 2 * share * asked;
      // Each request with an id of its client counts, so that the bound grows with the traffic.
      const isChosen = isSampled(randomnessIn(parent.traceId), share);
      if (!isChosen) {
        chosen.take(startedMs, () => 0);
        return false;
      }
      return chosen.take(startedMs, expected) || isSampled(randomnessOf(id), share);
    },
    /** Whether and why a request that was not sampled is recorded, at its end. */
    keeps(exchange: Exchange, slowMs: number): Kept | undefined {
      const why = whyKept(exchange, slowMs);
      if (why === undefined) return undefined;
      const holder = exchange.key?.id ?? addressGroup(exchange.address);
      const { otelKeptPerSecondMax: max, otelKeptPerHolderMax: perHolderMax } = bounds;
      return kept[why].takeFor(holder, exchange.endedMs, max, perHolderMax) ? why : undefined;
    },
  };
}

function whyKept(exchange: Exchange, slowMs: number): Kept | undefined {
  const { status, decision, startedMs, endedMs } = exchange;
  if (status >= 500 || failureOf(exchange) !== undefined) return 'failed';
  const kind = decision?.kind;
  if (kind === 'refused' || kind === 'banned' || kind === 'crowded') return 'refused';
  return endedMs - startedMs >= slowMs ? 'slow' : undefined;
}

/** The upper 52 of the 56 random bits, which a number holds exactly. */
const randomMax = 2 ** 52;

function isSampled(randomness: number, share: number): boolean {
  return randomness >= randomMax * (1 - share);
}

/** @param traceId 32 hex digits */
function randomnessIn(traceId: string): number {
  return Number.parseInt(traceId.slice(18, 31), 16);
}

/** As of the trace id that `traceIdFrom` makes. */
function randomnessOf(requestId: string): number {
  return Number.parseInt(requestId.slice(21, 23) + requestId.slice(24, 35), 16);
}

/** The digits of a random UUID are a valid trace id, so `X-Request-Id` leads to the trace. */
export function traceIdFrom(requestId: string): string {
  return requestId.replaceAll('-', '');
}
