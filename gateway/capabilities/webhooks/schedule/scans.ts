import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Notice } from '../../../fleet/kinds/kinds.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { WebhookEventType } from '../../../shared/words/event-names.js';
import type { Recorded } from '../notify.ts';
import type { ScanPeriod } from './marks.ts';
import type { ScanState } from './scan-state.ts';

/** Finds the notices of one kind that become due with the time. */
export interface Scan {
  readonly type: WebhookEventType;
  /** Whether the first scan of all reports what was due before. */
  readonly isFirstLate: boolean;
  /** The value undefined marks a place at which the caller may pause. @throws when the scan is incomplete */
  notices(period: ScanPeriod): AsyncIterable<Notice | undefined> | Iterable<Notice | undefined>;
}

/**
 * Looks at the clock: it finds what became due since the last scan, also if no gateway ran meanwhile. One process of the fleet scans at a
 * time. Each scan continues where the last complete scan ended, so each mark is reported exactly once. After an incomplete
 * scan, the next scan covers the same period again. The identity of the notices then prevents a second event.
 *
 * Each process remembers the end of the last scan of all processes. If Redis loses its data, a process that has read this end continues there.
 *
 * The pause between two scans grows with the length of a scan, so that a directory of a million keys is not read all the time. All
 * processes pause together.
 */
export function createScans({
  scans,
  isWanted,
  state,
  record,
  waiting,
  nowMs,
  log,
  bounds,
}: {
  readonly scans: readonly Scan[];
  /** Whether a receiver wants this type. Events that no receiver wants are not looked for. */
  readonly isWanted: (type: WebhookEventType) => boolean;
  readonly state: ScanState;
  readonly record: (notice: Notice) => Promise<Recorded>;
  /** The number of waiting deliveries; undefined if the store is unavailable. */
  readonly waiting: () => Promise<number | undefined>;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'warn'>;
  readonly bounds: Bounds;
}) {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  /** Whether another scan was requested during a scan. */
  let isDue = false;
  let isClosed = false;
  /** The end of the last complete scan of each type that this process knows, epoch ms. */
  const known = new Map<WebhookEventType, number>();

  async function scanAll(): Promise<void> {
    isDue = false;
    const beganMs = performance.now();
    const wanted = scans.filter(({ type }) => isWanted(type));
    for (const scan of wanted) {
      if (!(await mayGoOn())) {
        for (const { type } of wanted) await scannedMs(type);
        break;
      }
      await scanOne(scan).catch((error: Error) => {
        if (!isClosed)
          log.warn({ event: scan.type, reason: error.message }, 'a scan for events was incomplete');
      });
    }
    const { noticeScanIntervalMs, noticeScanIntervalMaxMs, noticeScanPauseFactor, noticeScanLeadMs } = bounds;
    const longMs = (performance.now() - beganMs) * noticeScanPauseFactor;
    const pauseMs = Math.round(Math.min(Math.max(longMs, noticeScanIntervalMs), noticeScanIntervalMaxMs));
    const isLeading = wanted.length > 0 && !isClosed && (await state.lead(pauseMs + noticeScanLeadMs));
    schedule(isDue ? 0 : isLeading ? pauseMs : noticeScanIntervalMs);
  }

  async function mayGoOn(): Promise<boolean> {
    return !isClosed && (await state.lead(bounds.noticeScanLeadMs));
  }

  /** @throws when the scan is incomplete */
  async function scanOne({ type, isFirstLate, notices }: Scan): Promise<void> {
    const toMs = nowMs();
    const lastMs = await scannedMs(type);
    if (lastMs === undefined) throw new Error('Redis is unavailable');
    const fromMs = lastMs !== 'never' ? lastMs : isFirstLate ? 0 : toMs;
    let found = 0;
    let checkedMs = performance.now();
    for await (const notice of notices({ fromMs, toMs })) {
      if (notice === undefined) await sleep(bounds.noticeScanPauseMs, undefined, { ref: false });
      else if ((await record(notice)) === 'dropped') throw new Error('Redis is unavailable');
      else found += 1;
      if (found < bounds.noticeScanEventsAtOnce && performance.now() - checkedMs < bounds.noticeScanCheckMs)
        continue;
      await untilRoom();
      found = 0;
      checkedMs = performance.now();
    }
    // The clock of Redis may go back after a failover.
    if (lastMs !== 'never' && lastMs >= toMs) return;
    known.set(type, toMs);
    await state.noteScanned(type, toMs);
  }

  /** The end of the last complete scan; `never` if there was none; undefined if the store is unavailable. */
  async function scannedMs(type: WebhookEventType): Promise<number | 'never' | undefined> {
    const stored = await state.scannedMs(type);
    if (stored === undefined) return undefined;
    const lastMs = Math.max(stored === 'never' ? 0 : stored, known.get(type) ?? 0);
    if (lastMs === 0) return 'never';
    known.set(type, lastMs);
    return lastMs;
  }

  /** Waits until the queue has room. @throws when the process may no longer scan */
  async function untilRoom(): Promise<void> {
    for (;;) {
      if (!(await mayGoOn())) throw new Error('another process scans, or Redis is unavailable');
      const queued = await waiting();
      if (queued === undefined) throw new Error('Redis is unavailable');
      if (queued <= bounds.noticeScanWaitingMax) return;
      await sleep(bounds.noticeScanFullPauseMs, undefined, { ref: false });
    }
  }

  function schedule(afterMs: number): void {
    clearTimeout(timer);
    if (!isClosed) timer = setTimeout(scanNow, afterMs).unref();
  }

  function scanNow(): void {
    isDue = running !== undefined;
    running ??= scanAll().finally(() => (running = undefined));
  }

  return {
    start: () => schedule(0),
    /** Scans without delay, because something may have become due now. */
    soon: () => schedule(0),
    /** Lets another process scan. A scan in progress stops at its next check. */
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await state.leave();
    },
  };
}
