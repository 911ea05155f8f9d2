import { traceParentOf } from '../../observe/trace-id.ts';
import { asMutable, type Exchange } from '../../request/exchange.ts';
import type { Settings } from '../../shared/model.ts';
import type { RequestHooks } from '../interfaces/request.ts';
import type { ProcessPart, ProcessSources } from '../interfaces/running.ts';
import { type Collector, createCollector } from './collector.ts';
import type { OtelSettings } from './settings/schema.ts';
import { RequestTrace } from './traces/request-trace.ts';
import { createSampler, type Sampler } from './traces/sampler.ts';
import { createSpanTexts } from './traces/span-text.ts';
import { createTraceSender, type TraceSender } from './traces/trace-sender.ts';

interface Otel extends ProcessPart {
  readonly collector: Collector;
}

/** The names in `ProcessPart.counts`. */
export const spanCounts = { sent: 'otel spans sent', lost: 'otel spans lost' } as const;

/** The part of a process that records and sends traces. Each process sends the spans of its own requests. */
export function createOtel({ settings, log, bounds }: ProcessSources): Otel {
  const collector = createCollector(bounds);
  const sampler = createSampler(bounds);
  const sender = createTraceSender({ settings, collector, log, bounds });
  return {
    collector,
    hooks(next) {
      return next.otel === undefined ? {} : hooksFor(next, next.otel, { sampler, sender });
    },
    reloaded: sender.settingsChanged,
    counts() {
      const { sent, lost } = sender.counts();
      const isUsed = settings().otel !== undefined || sent + lost > 0;
      return isUsed ? { [spanCounts.sent]: sent, [spanCounts.lost]: lost } : {};
    },
    flush: sender.close,
  };
}

function hooksFor(
  settings: Settings,
  { share, slowMs }: OtelSettings,
  { sampler, sender }: { readonly sampler: Sampler; readonly sender: TraceSender },
): Partial<RequestHooks> {
  const texts = createSpanTexts(settings);
  return {
    attemptFields: [
      (exchange) => {
        const trace = new RequestTrace();
        asMutable(exchange).trace = trace;
        const parent = traceParentOf(exchange.req.headers.traceparent);
        if (!sampler.samples(exchange, parent, share)) return undefined;
        trace.isSampled = true;
        trace.record(exchange.id, parent);
        return trace;
      },
    ],
    observeAttempt: [
      (exchange, attempt) => {
        if (exchange.trace instanceof RequestTrace) exchange.trace.addAttempt(attempt);
      },
    ],
    observeEnd: [
      (exchange) => {
        const recorded = recordedTrace(exchange);
        if (recorded === undefined) return;
        const { trace, kept } = recorded;
        for (const text of texts.textsOf(exchange, trace, { nowMs: Date.now(), kept })) sender.add(text);
      },
    ],
  };

  /** The trace of a request that is recorded. The request was sampled before it was forwarded, or is sampled or kept at its end. */
  function recordedTrace(exchange: Exchange) {
    const trace = exchange.trace instanceof RequestTrace ? exchange.trace : undefined;
    if (trace?.isSampled) return { trace, kept: undefined };
    const { traceparent } = exchange.req.headers;
    const isSampled = trace === undefined && sampler.samples(exchange, traceParentOf(traceparent), share);
    const kept = isSampled ? undefined : sampler.keeps(exchange, slowMs);
    if (!isSampled && kept === undefined) return undefined;
    const made = trace ?? new RequestTrace();
    made.record(exchange.id, traceParentOf(traceparent));
    asMutable(exchange).trace = made;
    return { trace: made, kept };
  }
}
