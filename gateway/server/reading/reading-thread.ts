import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { type ResourceLimits, Worker } from 'node:worker_threads';
import type { Logger } from 'pino';
import { type AdminResponse, errorResponse } from '../../admin/admin-response.ts';
import type { ThreadRequest } from '../../admin/api/thread-routes.ts';
import { messageBetween } from '../../config/loader/settings-message.ts';
import type { BlockedSecrets } from '../../keys/leaks/blocked/blocked-secrets.ts';
import type { Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { FromReading, Lent, ReadingData, ToReading } from './reading-messages.ts';

interface ReadingThreadOptions {
  readonly settings: () => Settings;
  readonly lent: Lent;
  readonly data: Omit<ReadingData, 'bounds'>;
  readonly blocked: Pick<BlockedSecrets, 'all' | 'revision'>;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'error'>;
  readonly bounds: Bounds;
  readonly startWorker?: StartReadingWorker | undefined;
}

/** Starts the worker that runs `answerReading`. */
export type StartReadingWorker = (data: ReadingData, limits: ResourceLimits) => ReadingWorker;

type ReadingWorker = Pick<Worker, 'on' | 'postMessage' | 'terminate' | 'unref'>;

const startThread: StartReadingWorker = (workerData, resourceLimits) =>
  new Worker(new URL('./reading-thread-worker.ts', import.meta.url), { workerData, resourceLimits });

interface Thread {
  readonly worker: ReadingWorker;
  readonly waiting: Map<number, PromiseWithResolvers<AdminResponse>>;
  /** The settings that the thread has received so far. */
  settings: Settings | undefined;
  /** The revision of the leaked secrets that the thread has received so far; undefined: none. */
  leaksRevision: number | undefined;
}

/**
 * Reads many keys, or many minutes of usage, for operators in a separate thread, so that API requests do not wait. The thread has the
 * settings, a separate connection to Redis, and the routes that are marked `inThread`. A request is sent to the thread as plain data with
 * the octets of its body. The text of the response is transferred back without a copy. The thread reads the main thread's memory through
 * `Lent`, in small parts with pauses.
 *
 * The thread starts at the first request and exits when it has been idle for `readingThreadIdleMs`. A thread that dies or hangs is replaced
 * at the next request, and its requests in progress get 503.
 */
export function createReadingThread(options: ReadingThreadOptions) {
  const { settings, data, blocked, nowMs, log, bounds, startWorker = startThread } = options;
  const serve = createLender(options.lent, bounds);
  const fixed = new Map<string, { readonly of: Settings; readonly response: Promise<AdminResponse> }>();
  let thread: Thread | undefined;
  let requests = 0;
  let idleTimer: NodeJS.Timeout | undefined;

  function start(): Thread {
    const worker = startWorker(
      { ...data, bounds },
      {
        // The heap of the thread is not larger than the heap of the process, which Node derives from the container's memory.
        maxOldGenerationSizeMb: Math.min(
          bounds.readingThreadHeapMebibytes,
          getHeapStatistics().heap_size_limit / 1_048_576,
        ),
        maxYoungGenerationSizeMb: bounds.readingThreadYoungMebibytes,
      },
    );
    const started: Thread = { worker, waiting: new Map(), settings: undefined, leaksRevision: undefined };
    worker.unref();
    worker.on('message', (message: FromReading) => hear(started, message));
    worker.on('error', (err) => end(started, err.message));
    worker.on('exit', () => end(started, 'it ended'));
    return started;
  }

  function end(ended: Thread, reason?: string): void {
    if (thread !== ended) return;
    thread = undefined;
    clearTimeout(idleTimer);
    void ended.worker.terminate();
    if (reason !== undefined)
      log.error({ reason }, 'the thread that reads for operators ended, and is replaced');
    const busy = errorResponse('busy', undefined, { 'Retry-After': '1' });
    for (const { resolve } of ended.waiting.values()) resolve(busy);
  }

  function tell({ worker }: Thread, message: ToReading): void {
    worker.postMessage(message);
  }

  function hear(from: Thread, message: FromReading): void {
    switch (message.kind) {
      case 'call':
        serve(message).then(
          (value) => tell(from, { kind: 'reply', number: message.number, value }),
          (err) => log.error({ err }, 'a bug in a request of the reading thread'),
        );
        return;
      case 'response': {
        const { buffer, byteOffset, length } = message.body;
        const body = Buffer.from(buffer as ArrayBuffer, byteOffset, length);
        from.waiting.get(message.number)?.resolve({ ...message.response, body });
        return;
      }
      case 'failed':
        from.waiting.get(message.number)?.reject(message.error);
    }
  }

  async function askNow(request: ThreadRequest): Promise<AdminResponse> {
    thread ??= start();
    const asked = thread;
    clearTimeout(idleTimer);
    const inForce = settings();
    if (asked.settings !== inForce) {
      tell(asked, { kind: 'settings', message: messageBetween(asked.settings, inForce), nowMs: nowMs() });
      asked.settings = inForce;
    }
    const leaksRevision = blocked.revision();
    if (asked.leaksRevision !== leaksRevision) {
      tell(asked, { kind: 'leaks', leaked: [...blocked.all()] });
      asked.leaksRevision = leaksRevision;
    }
    const number = ++requests;
    const response = Promise.withResolvers<AdminResponse>();
    asked.waiting.set(number, response);
    tell(asked, { kind: 'request', number, nowMs: nowMs(), request });
    const stuckTimer = setTimeout(() => end(asked, 'a request was stuck'), bounds.readingStuckMs).unref();
    try {
      return await response.promise;
    } finally {
      clearTimeout(stuckTimer);
      asked.waiting.delete(number);
      if (asked === thread && asked.waiting.size === 0)
        idleTimer = setTimeout(() => end(asked), bounds.readingThreadIdleMs).unref();
    }
  }

  /** Caches a fixed response for a short time. After a change of the settings, the cached response is not used. */
  async function askFixed(request: ThreadRequest): Promise<AdminResponse> {
    const name = JSON.stringify([request.route, request.query]);
    const known = fixed.get(name);
    if (known?.of === settings()) return known.response;
    const made = { of: settings(), response: askNow(request) };
    fixed.set(name, made);
    const forget = () => {
      if (fixed.get(name) === made) fixed.delete(name);
    };
    const isMade = await made.response.then(
      ({ status }) => status === 200,
      () => false,
    );
    if (isMade) setTimeout(forget, bounds.readingFixedKeptMs).unref();
    else forget();
    return made.response;
  }

  return {
    /** Rejects with the error that a route throws. */
    ask: (request: ThreadRequest): Promise<AdminResponse> =>
      request.isFixed ? askFixed(request) : askNow(request),
    close() {
      if (thread !== undefined) end(thread);
    },
  };
}

/**
 * Answers the reading thread's queries one at a time. The pause after an answer lasts longer than the query did, so most of the time
 * remains for API requests.
 */
function createLender(
  lent: Lent,
  { readingPauseFactor, readingPauseMaxMs }: Bounds,
): (call: Extract<FromReading, { kind: 'call' }>) => Promise<unknown> {
  let last: Promise<unknown> = Promise.resolve();
  let owedMs = 0;

  return ({ name, args }) => {
    const answer = last.then(async () => {
      const beganMs = performance.now();
      const value = await (lent[name] as (...args: readonly unknown[]) => unknown)(...args);
      owedMs += readingPauseFactor * (performance.now() - beganMs);
      return value;
    });
    last = answer.then(rest, rest);
    return answer;
  };

  /** Timers have a resolution of a millisecond, so shorter pauses are added up until they reach a millisecond. */
  async function rest(): Promise<void> {
    if (owedMs < 1) return void (await nextTurn());
    const pauseMs = Math.min(owedMs, readingPauseMaxMs);
    owedMs = 0;
    await sleep(pauseMs);
  }
}
