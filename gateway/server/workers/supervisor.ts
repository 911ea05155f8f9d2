import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NotInForce, Phase } from '../../admin/readiness.ts';
import { fullMessage, type SettingsMessage } from '../../config/loader/settings-message.ts';
import type { EditedFile } from '../../fleet/changes.ts';
import type { Notice } from '../../fleet/kinds/kinds.ts';
import {
  joinProcessMetrics,
  lastingMetrics,
  type ProcessMetrics,
} from '../../observe/metrics/process-metrics.ts';
import { createRequestMetrics } from '../../observe/metrics/request-metrics.ts';
import type { ListeningSocket } from '../../request/listen/listen-on.ts';
import type { Settings } from '../../shared/model.ts';
import { addFigures } from '../../shared/structures/add-figures.ts';
import { withinDeadline } from '../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createAdminSide } from '../admin-side.ts';
import type { Gateway, GatewayOptions } from '../gateway.ts';
import { joinMemories } from '../own-memory.ts';
import type { Counted } from '../served.ts';
import { openStores } from '../stores.ts';
import { type BoundSockets, bindSockets } from './bind-sockets.ts';
import { startWorker, type WorkerProcess } from './start-worker.ts';
import { boundsOfWorker } from './worker-bounds.ts';
import type { FromWorker } from './worker-messages.ts';

export interface SupervisorOptions extends Omit<GatewayOptions, 'pid' | 'bounds'> {
  readonly bounds: Bounds;
  readonly workers: number;
  /** Command-line options of Node and V8 for the workers. */
  readonly execArgv: readonly string[];
}

export interface Supervisor extends Omit<Gateway, 'reload'> {
  /** @param message changes the settings of the workers to these settings */
  reload(
    settings: Settings,
    notInForce: NotInForce,
    files: readonly EditedFile[],
    message: SettingsMessage,
  ): void;
  /** Ends all workers immediately. */
  kill(): void;
}

/**
 * A place for one worker at a time. Each place has a listening socket, which stays open when the worker exits. The next worker of the place
 * accepts the connections that wait at this socket.
 */
interface Place {
  /** From 1. */
  readonly number: number;
  worker: WorkerProcess | undefined;
  startedMs: number;
  /** The pause between the exit of a worker and the start of its replacement. */
  pauseMs: number;
  pauseTimer: NodeJS.Timeout | undefined;
  /** Another place, whose worker accepts the connections of this place until a replacement listens. */
  standIn: Place | undefined;
  /** Settles when the first worker of this place listens or has failed to start. */
  readonly begun: PromiseWithResolvers<void>;
}

/**
 * Creates a gateway in several processes. The supervisor serves operators, and owns the signals, the configuration and the
 * sockets. Workers serve requests. `README.md` describes the guarantees.
 */
export function createSupervisor({
  settings: firstSettings,
  workers: count,
  execArgv,
  log,
  bounds,
  nowMs = Date.now,
}: SupervisorOptions): Supervisor {
  const { logger } = log;
  let settings = firstSettings;
  let phase: Phase = 'starting';
  let bound: BoundSockets | undefined;
  const ticketSecret = randomBytes(32);
  const workerBounds = boundsOfWorker(bounds, count);
  const places = Array.from({ length: count }, (_, index): Place => {
    return {
      number: index + 1,
      worker: undefined,
      startedMs: 0,
      pauseMs: 0,
      pauseTimer: undefined,
      standIn: undefined,
      begun: Promise.withResolvers(),
    };
  });
  let replaced = 0;
  /** The counts of workers that have exited. */
  let countedBefore = nothingCounted();
  /** Cached total that includes live workers; undefined when it is stale. */
  let total: Counted | undefined;
  /** The metrics of workers that have exited. */
  let metricsBefore: Promise<ProcessMetrics> = Promise.resolve([]);
  let onEnded: (() => void) | undefined;
  let silenceTimer: NodeJS.Timeout | undefined;

  const stores = openStores({
    settings: () => settings,
    log: logger,
    onEvent: (notice) => admin.recordNotice(notice),
    bounds,
    nowMs,
  });
  const admin = createAdminSide({
    settings,
    processId: randomBytes(6).toString('hex'),
    stores,
    phase: () => phase,
    served: {
      processes: () => serving().flatMap((worker) => worker.report()?.process ?? []),
      counted() {
        total ??= places.reduce((sum, { worker }) => withCounts(sum, worker), countedBefore);
        return total;
      },
      sendCounts(flush) {
        for (const worker of serving()) worker.tell({ kind: 'send_counts', flush });
      },
      memory: joinMemories(() => serving().map(({ memory }) => memory)),
      workers: {
        count: () => ({ configured: count, serving: serving().length, replaced }),
        metrics: readMetrics,
      },
    },
    log,
    bounds,
    nowMs,
  });

  function serving(): WorkerProcess[] {
    return places.flatMap(({ worker }) => (worker?.serves() ? [worker] : []));
  }

  function startAt(place: Place): void {
    place.startedMs = performance.now();
    const worker = startWorker({
      execArgv,
      replyTimeoutMs: bounds.workerReplyTimeoutMs,
      onMessage: (message) => hear(place, worker, message),
      onEnd: (reason) => endOf(place, worker, reason),
    });
    place.worker = worker;
    worker.tell({
      kind: 'start',
      worker: place.number,
      settings: fullMessage(settings),
      bounds: workerBounds,
      ticketSecret,
    });
    worker.tell({ kind: 'listen' }, socketOf(place));
  }

  function socketOf({ number }: Place): ListeningSocket | undefined {
    return bound?.sockets[number - 1];
  }

  function hear(place: Place, worker: WorkerProcess, message: FromWorker): void {
    switch (message.kind) {
      case 'listens':
        place.begun.resolve();
        place.standIn?.worker?.tell({ kind: 'give_back', worker: place.number });
        place.standIn = undefined;
        findStandIns();
        return;
      case 'report':
        total = undefined;
        return;
      case 'event':
        hearOf(message.notice, worker.report()?.process.id);
        return;
      case 'key_changed':
        admin.recordKeyChange(message.change);
        return;
      case 'failed':
      case 'memory':
      case 'metrics':
      case 'phase':
        return;
    }
  }

  function hearOf(notice: Notice, workerId: string | undefined): void {
    if (notice.kind === 'ban' || notice.kind === 'ban_ended') stores.limiter.observeBan(notice);
    else admin.recordNotice(notice, workerId);
  }

  function endOf(place: Place, worker: WorkerProcess, reason: string): void {
    countedBefore = withCounts(countedBefore, worker);
    total = undefined;
    const metrics = worker.metrics();
    if (metrics !== undefined) keepMetrics(metrics);
    place.worker = undefined;
    if (phase === 'starting') place.begun.reject(new Error(`worker ${place.number} ended: ${reason}`));
    onEnded?.();
    if (phase !== 'serving') return;
    replaced += 1;
    const livedMs = performance.now() - place.startedMs;
    const longerMs = Math.min(2 * place.pauseMs, bounds.workerPauseMaxMs);
    place.pauseMs = livedMs >= bounds.workerSteadyMs || longerMs === 0 ? bounds.workerPauseMs : longerMs;
    const { number, pauseMs } = place;
    const ended = { worker: number, pid: worker.pid, reason, pauseMs };
    logger.error(ended, 'a worker ended, and is replaced');
    admin.recordNotice({ kind: 'worker_ended', ...ended });
    place.pauseTimer = setTimeout(() => startAt(place), pauseMs);
    findStandIns();
  }

  /** Finds a stand-in for each place whose worker does not listen. */
  function findStandIns(): void {
    const able = places.filter(({ worker }) => worker?.serves());
    for (const place of places) {
      if (place.worker?.serves() || place.standIn?.worker?.serves()) continue;
      // Different places get different stand-ins if there are enough workers.
      place.standIn = able[place.number % able.length];
      place.standIn?.worker?.tell({ kind: 'accept_for', worker: place.number }, socketOf(place));
    }
  }

  function keepMetrics(metrics: ProcessMetrics): void {
    metricsBefore = metricsBefore.then((before) => joinProcessMetrics([before, lastingMetrics(metrics)]));
  }

  async function readMetrics(): Promise<readonly ProcessMetrics[]> {
    const asked = serving();
    await withinDeadline<unknown>(
      Promise.all(asked.map((worker) => worker.askMetrics())),
      bounds.workerReplyTimeoutMs,
      () => undefined,
    );
    return [await metricsBefore, ...asked.flatMap((worker) => [worker.metrics() ?? []])];
  }

  /** Kills workers whose event loop hangs, and workers whose start takes too long. */
  function watchSilence(): void {
    let lookedMs = performance.now();
    silenceTimer = setInterval(() => {
      const now = performance.now();
      // While the supervisor is blocked, it reads no messages. Blocked time of the supervisor therefore does not count as silence of a
      // worker.
      const lateMs = Math.max(0, now - lookedMs - bounds.workerReportIntervalMs);
      lookedMs = now;
      for (const { number, worker } of places) {
        if (worker === undefined) continue;
        worker.heardMs += lateMs;
        const boundMs = worker.serves() ? bounds.workerSilenceMaxMs : bounds.workerStartTimeoutMs;
        if (now - worker.heardMs < boundMs) continue;
        const stated = { worker: number, pid: worker.pid };
        if (worker.serves()) {
          logger.error(stated, 'a worker does not respond, and is killed');
          worker.kill();
        } else {
          const phase = worker.startPhase();
          logger.error({ ...stated, phase }, 'a worker takes too long to start, and is killed');
          worker.kill(`after ${boundMs / 1_000} s it does not listen, and still ${phase}`);
        }
      }
    }, bounds.workerReportIntervalMs).unref();
  }

  async function allEnded(): Promise<void> {
    while (places.some(({ worker }) => worker !== undefined)) {
      await new Promise<void>((resolve) => {
        onEnded = resolve;
      });
    }
  }

  function kill(): void {
    for (const { worker, pauseTimer } of places) {
      clearTimeout(pauseTimer);
      worker?.kill();
    }
  }

  return {
    async start() {
      const adminAddress = await admin.listen();
      bound = await bindSockets(settings.listen, count);
      watchSilence();
      for (const place of places) startAt(place);
      await Promise.all(places.map(({ begun }) => begun.promise));
      phase = 'serving';
      admin.start();
      return { listen: bound.address, admin: adminAddress };
    },
    reload(next, notInForce, files, message) {
      settings = next;
      for (const { worker } of places) worker?.tell({ kind: 'settings', settings: message });
      admin.reload(next, notInForce, files);
    },
    reportFailedReload: admin.reportFailedReload,
    async drain({ graceMs }) {
      phase = 'draining';
      for (const { pauseTimer } of places) clearTimeout(pauseTimer);
      await sleep(graceMs);
      bound?.close();
      for (const { worker } of places) {
        if (worker?.serves()) worker.tell({ kind: 'drain' });
        else worker?.kill();
      }
      const killTimer = setTimeout(kill, bounds.drainDeadlineMs + bounds.workerEndTimeoutMs);
      await allEnded();
      clearTimeout(killTimer);
      clearInterval(silenceTimer);
      await Promise.all([stores.flush(), admin.flush()]);
      stores.close();
      admin.close();
    },
    kill,
  };
}

function withCounts(sum: Counted, worker: WorkerProcess | undefined): Counted {
  const counted = worker?.report()?.counted;
  return counted === undefined ? sum : addFigures(sum, counted);
}

function nothingCounted(): Counted {
  return {
    requests: createRequestMetrics().counts(),
    decidedLocally: 0,
    storeCalls: { decided: 0, failed: 0 },
    lookUps: new Map(),
    lostRequests: 0,
    ofParts: {},
  };
}
