/** The entry point of a worker, a process that serves requests and follows its supervisor's messages. */
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { applyMessage } from '../../config/loader/settings-message.ts';
import type { Notice } from '../../fleet/kinds/kinds.ts';
import { createLog, type Log } from '../../observe/create-log.ts';
import { createProcessRegistry } from '../../observe/metrics/process-metrics.ts';
import type { ListeningSocket } from '../../request/listen/listen-on.ts';
import type { Settings } from '../../shared/model.ts';
import { terminalOf } from '../../shared/terminal/terminal.ts';
import { memoryOfWorker } from '../own-memory.ts';
import { createRequestSide, type RequestSide } from '../request-side.ts';
import { openStores, type Stores } from '../stores.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

interface Worker {
  settings: Settings;
  readonly log: Log;
  readonly stores: Stores;
  readonly requests: RequestSide;
  readonly reportTimer: NodeJS.Timeout;
  /** The sockets of exited workers, by the number of the worker. */
  readonly accepting: Map<number, { stop(): void }>;
}

let worker: Worker | undefined;
let isEnding = false;
let metrics: ReturnType<typeof createProcessRegistry> | undefined;

process.on('message', (message: ToWorker, socket: ListeningSocket) => void obey(message, socket));
// A terminal sends signals to all processes. Workers ignore signals, because the supervisor reacts to them. A worker drains when its
// supervisor has exited.
process.on('SIGTERM', () => {});
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.once('disconnect', () => void end());
tell({ kind: 'phase', phase: 'reads its settings' });

async function obey(message: ToWorker, socket: ListeningSocket): Promise<void> {
  if (message.kind === 'start') {
    worker = start(message);
    tell({ kind: 'phase', phase: 'opens its socket' });
    return;
  }
  if (worker === undefined) throw new Error('a message arrived before the worker was started');
  const { requests, accepting } = worker;
  switch (message.kind) {
    case 'listen':
      await requests.listen({ socket }).then(
        () => {
          report();
          tell({ kind: 'listens' });
        },
        (error) => tell({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) }),
      );
      return;
    case 'accept_for':
      accepting.set(message.worker, requests.alsoAccept(socket));
      return;
    case 'give_back':
      accepting.get(message.worker)?.stop();
      accepting.delete(message.worker);
      return;
    case 'settings':
      worker.settings = applyMessage(worker.settings, message.settings);
      requests.reload(worker.settings);
      return;
    case 'send_counts':
      await worker.stores.sendCounts(message.flush);
      report();
      return;
    case 'ask_metrics':
      metrics ??= createProcessRegistry();
      tell({ kind: 'metrics', metrics: await metrics.getMetricsAsJSON() });
      return;
    case 'ask_memory': {
      const { name, number, args } = message;
      const call = memoryOfWorker(worker.stores)[name] as (...args: readonly unknown[]) => Promise<unknown>;
      tell({ kind: 'memory', number, value: await call(...args) });
      return;
    }
    case 'drain':
      await end();
  }
}

function start(message: Extract<ToWorker, { kind: 'start' }>): Worker {
  const { bounds, ticketSecret, worker: number } = message;
  const settings = applyMessage(undefined, message.settings);
  const log = createLog({
    terminal: terminalOf(process.stdout, process.env),
    sharedBy: { worker: number },
    bounds,
  });
  process.on('uncaughtException', (bug) => {
    log.logger.fatal({ err: bug }, 'a bug ends the worker');
    void log.close().then(() => process.exit(1));
  });
  const onEvent = (notice: Notice) => tell({ kind: 'event', notice });
  const stores = openStores({
    settings: () => worker?.settings ?? settings,
    log: log.logger,
    // The supervisor logs each ban once for all workers.
    banLog: pino({ level: 'silent' }),
    onEvent,
    bounds,
    nowMs: Date.now,
  });
  const requests = createRequestSide({
    settings,
    processId: randomBytes(6).toString('hex'),
    stores,
    log,
    onEvent,
    onKeyChange: (change) => tell({ kind: 'key_changed', change }),
    bounds,
    nowMs: Date.now,
    pid: process.pid,
    worker: number,
    ticketSecret,
  });
  const reportTimer = setInterval(report, bounds.workerReportIntervalMs);
  return { settings, log, stores, requests, reportTimer, accepting: new Map() };
}

function report(): void {
  if (worker === undefined) return;
  const { requests } = worker;
  tell({ kind: 'report', process: requests.process(), counted: requests.counted() });
}

/** Drains the worker when the supervisor requests it, or when the supervisor has exited. */
async function end(): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  if (worker === undefined) process.exit(0);
  const { requests, stores, log, reportTimer } = worker;
  // Most counts are sent during the drain, because `usageCloseTimeoutMs` is short for the counts of many quiet keys.
  void stores.usage?.recorder.send();
  await requests.drain();
  await stores.flush();
  clearInterval(reportTimer);
  report();
  stores.close();
  await log.close();
  process.exit(0);
}

function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
