import { withinDeadline } from '../../../shared/structures/within-deadline.ts';
import type { OperatorsPart, OperatorsSources } from '../../interfaces/operators.ts';
import type { Collector } from '../collector.ts';
import { createLossReport } from '../report-loss.ts';
import { resourceOf, scopeOf } from '../resource.ts';
import { otelFamilies } from './otel-families.ts';
import { otlpMetrics } from './otlp-metrics.ts';

/**
 * Sends the metrics of the gateway and of its workers. The values are cumulative, so a POST that fails is not repeated: the next
 * one has its counts.
 */
export function otelOperators(
  collector: Collector,
  { settings, readMetrics, log, keys: { bounds } }: OperatorsSources,
): OperatorsPart {
  const startMs = performance.timeOrigin;
  const loss = createLossReport('metrics', { log, bounds });
  const cancel = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;
  /** The collector wants no POST before this time of the monotonic clock. */
  let notBeforeMs = 0;

  function begin(): void {
    if (performance.now() < notBeforeMs || sending !== undefined) return;
    sending = send()
      .catch(reportBug)
      .finally(() => {
        sending = undefined;
      });
  }

  function reportBug(bug: unknown): void {
    log.error({ err: bug }, 'a bug in the sending of metrics');
  }

  async function send(): Promise<void> {
    if (settings().otel?.metrics !== true) return;
    const metrics = otlpMetrics(await readMetrics(), { startMs, nowMs: Date.now() });
    const { otel, environment } = settings();
    if (otel === undefined) return;
    const scopeMetrics = [{ scope: scopeOf(), metrics }];
    const body = { resourceMetrics: [{ resource: resourceOf({ otel, environment }), scopeMetrics }] };
    const outcome = await collector.post(otel, 'metrics', [Buffer.from(JSON.stringify(body))], cancel.signal);
    if (outcome.kind === 'accepted') {
      if (outcome.rejected > 0)
        loss.add(outcome.rejected, `the collector rejected them: ${outcome.message || 'without a message'}`);
      return;
    }
    if (outcome.kind === 'later') notBeforeMs = performance.now() + outcome.pauseMs;
    loss.add(metrics.length, outcome.kind === 'cancelled' ? 'the gateway stopped' : outcome.error);
  }

  return {
    families: otelFamilies,
    start() {
      timer = setInterval(begin, bounds.otelMetricsIntervalMs).unref();
    },
    /** The last values, within a limited time. */
    async flush() {
      clearInterval(timer);
      const last = async () => {
        await sending;
        await send().catch(reportBug);
      };
      const ended = last();
      await withinDeadline<void>(ended, bounds.otelCloseTimeoutMs, () => cancel.abort());
      await ended;
      loss.close();
    },
  };
}
