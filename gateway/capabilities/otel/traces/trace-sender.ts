import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Settings } from '../../../shared/model.ts';
import { withinDeadline } from '../../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { Collector } from '../collector.ts';
import { createLossReport } from '../report-loss.ts';
import { resourceOf, scopeOf } from '../resource.ts';
import { type Batch, SpanQueue } from './span-queue.ts';

export type TraceSender = ReturnType<typeof createTraceSender>;

/**
 * Sends spans to the collector, one batch after the other. A batch that the collector does not take is repeated for some minutes, while
 * later spans wait in the queue. Spans that find no room in the queue are dropped and counted.
 */
export function createTraceSender({
  settings,
  collector,
  log,
  bounds,
}: {
  readonly settings: () => Settings;
  readonly collector: Collector;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  readonly bounds: Bounds;
}) {
  const queue = new SpanQueue(bounds);
  const loss = createLossReport('spans', { log, bounds });
  const counts = { sent: 0, lost: 0 };
  const cancel = new AbortController();
  let present = settings().otel;
  let isClosing = false;
  let sending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let wake: (() => void) | undefined;

  function lose(spans: number, reason: string): void {
    if (spans === 0) return;
    counts.lost += spans;
    loss.add(spans, reason);
  }

  function begin(): void {
    clearTimeout(timer);
    timer = undefined;
    sending = send()
      .catch(reportBug)
      .finally(() => {
        sending = undefined;
        later();
      });
  }

  function reportBug(bug: unknown): void {
    log.error({ err: bug }, 'a bug in the sending of traces');
  }

  /** Begins when a batch is full, or after `otelBatchMs`. */
  function later(): void {
    if (sending !== undefined) return;
    if (queue.hasFull()) begin();
    else if (!queue.isEmpty()) timer ??= setTimeout(begin, bounds.otelBatchMs).unref();
  }

  async function send(): Promise<void> {
    do {
      const batch = queue.take();
      if (batch === undefined) return;
      await deliver(batch);
      queue.release(batch);
    } while (queue.hasFull() || isClosing);
  }

  async function deliver(batch: Batch): Promise<void> {
    const begunMs = performance.now();
    for (let attempt = 0; ; attempt++) {
      const { otel, environment } = settings();
      if (otel === undefined) return;
      const body = bodyOf(batch, { otel, environment });
      const outcome = await collector.post(otel, 'traces', body, cancel.signal);
      switch (outcome.kind) {
        case 'accepted': {
          const rejected = Math.min(outcome.rejected, batch.spans);
          counts.sent += batch.spans - rejected;
          lose(rejected, `the collector rejected them: ${outcome.message || 'without a message'}`);
          return;
        }
        case 'cancelled':
          lose(batch.spans, 'the gateway stopped');
          return;
        case 'refused':
          lose(batch.spans, outcome.error);
          return;
        case 'later': {
          const pauseMs = Math.max(outcome.pauseMs, retryPauseMs(attempt, bounds));
          const isOver = performance.now() - begunMs + pauseMs > bounds.otelRetriesMs;
          if (isOver || isClosing) {
            lose(batch.spans, outcome.error);
            return;
          }
          await pause(pauseMs);
        }
      }
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  return {
    /** @param span JSON in ASCII */
    add(span: string): void {
      if (isClosing || settings().otel === undefined) return;
      if (queue.add(span)) later();
      else lose(1, 'too many spans wait');
    },
    counts: (): typeof counts => counts,
    /** The settings have changed. The next attempt goes to the new collector at once. */
    settingsChanged(): void {
      const { otel } = settings();
      if (otel === undefined) queue.clear();
      // An edit of other settings must not shorten a pause that the collector has requested.
      if (!isDeepStrictEqual(otel, present)) wake?.();
      present = otel;
    },
    /** Sends the last spans, within a limited time. */
    async close(): Promise<void> {
      isClosing = true;
      wake?.();
      const all = async () => {
        await sending;
        await send().catch(reportBug);
      };
      const ended = all();
      await withinDeadline<void>(ended, bounds.otelCloseTimeoutMs, () => cancel.abort());
      lose(queue.clear(), 'the gateway stopped');
      await ended;
      clearTimeout(timer);
      loss.close();
    },
  };
}

/** The batch with the JSON around its spans. */
function bodyOf({ octets }: Batch, from: Parameters<typeof resourceOf>[0]): readonly Buffer[] {
  const resource = JSON.stringify(resourceOf(from));
  const head = `{"resourceSpans":[{"resource":${resource},"scopeSpans":[{"scope":${JSON.stringify(scopeOf())},"spans":[`;
  return [Buffer.from(head), octets, end];
}

const end = Buffer.from(']}]}]}');

/** Doubles up to a longest pause. A random part of at most a half is subtracted, so that processes do not retry together. */
function retryPauseMs(attempt: number, { otelRetryMs, otelRetryPauseMaxMs }: Bounds): number {
  return Math.min(otelRetryMs * 2 ** attempt, otelRetryPauseMaxMs) * (1 - Math.random() / 2);
}
