import { type ChildProcess, fork, type SendHandle } from 'node:child_process';
import type { ProcessMetrics } from '../../observe/metrics/process-metrics.ts';
import type { ListeningSocket } from '../../request/listen/listen-on.ts';
import { withinDeadline } from '../../shared/structures/within-deadline.ts';
import type { OwnMemory } from '../own-memory.ts';
import type { FromWorker, StartPhase, ToWorker } from './worker-messages.ts';

type Report = Extract<FromWorker, { kind: 'report' }>;

/** The supervisor's view of a process that serves requests. */
export interface WorkerProcess {
  readonly pid: number;
  /** Whether the worker listens and has not exited. */
  serves(): boolean;
  /** The worker's last report; undefined before the first report. */
  report(): Report | undefined;
  /** The last metrics that the worker has sent. */
  metrics(): ProcessMetrics | undefined;
  /** Resolves when the worker has replied; never settles if the worker sends no reply. */
  askMetrics(): Promise<void>;
  /** Asks the worker for data of its memory. */
  readonly memory: OwnMemory;
  startPhase(): StartPhase;
  /** The time of the worker's last message, on the clock of `performance.now()`; until the worker listens, of its start. */
  heardMs: number;
  tell(message: ToWorker, socket?: ListeningSocket): void;
  /** @param reason the reason of the end, by default the signal */
  kill(reason?: string): void;
}

export interface StartWorkerOptions {
  /** How long the worker may take to answer a question about its memory. */
  readonly replyTimeoutMs: number;
  /** Command-line options for Node and V8. */
  readonly execArgv: readonly string[];
  readonly onMessage: (message: FromWorker) => void;
  /** Called once, when the worker has exited. The reason is the worker's own text, or for example `SIGKILL` or `exit code 1`. */
  readonly onEnd: (reason: string) => void;
}

/** Starts a process that waits for the supervisor's messages; see `worker-messages.ts`. */
export function startWorker({
  execArgv,
  replyTimeoutMs,
  onMessage,
  onEnd,
}: StartWorkerOptions): WorkerProcess {
  const child: ChildProcess = fork(new URL('./worker-main.ts', import.meta.url), {
    execArgv: [...execArgv],
    serialization: 'advanced',
  });
  let startPhase: StartPhase = 'loads its code';
  let listens = false;
  let hasEnded = false;
  let report: Report | undefined;
  let metrics: ProcessMetrics | undefined;
  let asking: PromiseWithResolvers<void> | undefined;
  let failure: string | undefined;
  let questions = 0;
  /** The unanswered questions about the worker's memory. */
  const asked = new Map<number, (value: never) => void>();

  const worker: WorkerProcess = {
    pid: child.pid ?? 0,
    serves: () => listens && !hasEnded,
    startPhase: () => startPhase,
    report: () => report,
    metrics: () => metrics,
    askMetrics() {
      worker.tell({ kind: 'ask_metrics' });
      asking ??= Promise.withResolvers();
      return asking.promise;
    },
    memory: {
      // The worker needs only these members of a key.
      readStatuses: (keys) =>
        askMemory(
          'readStatuses',
          keys.map(({ id, limits, read }) => ({ id, limits, read })),
        ),
      readRecords: (reads) => askMemory('readRecords', reads),
      readActive: () => askMemory('readActive'),
      readLastSeen: (ids) => askMemory('readLastSeen', ids),
      readHeldKeys: (ids) => askMemory('readHeldKeys', ids),
    },
    heardMs: performance.now(),
    tell(message, socket) {
      // A failed send needs no handling, because `onEnd` will be called.
      if (child.connected) child.send(message, socket as SendHandle | undefined, {}, () => {});
    },
    kill(reason) {
      failure ??= reason;
      child.kill('SIGKILL');
    },
  };

  async function askMemory<Name extends keyof OwnMemory>(
    name: Name,
    ...args: readonly unknown[]
  ): Promise<Awaited<ReturnType<OwnMemory[Name]>> | undefined> {
    const number = ++questions;
    const reply = new Promise<Awaited<ReturnType<OwnMemory[Name]>>>((resolve) => asked.set(number, resolve));
    worker.tell({ kind: 'ask_memory', number, name, args });
    const value = await withinDeadline(reply, replyTimeoutMs, () => undefined);
    asked.delete(number);
    return value;
  }

  child.on('message', (message: FromWorker) => {
    if (message.kind === 'listens') listens = true;
    if (listens) worker.heardMs = performance.now();
    if (message.kind === 'phase') startPhase = message.phase;
    else if (message.kind === 'report') report = message;
    else if (message.kind === 'metrics') {
      metrics = message.metrics;
      asking?.resolve();
      asking = undefined;
    } else if (message.kind === 'memory') {
      asked.get(message.number)?.(message.value as never);
    } else if (message.kind === 'failed') {
      worker.kill(message.reason);
    }
    onMessage(message);
  });
  child.on('error', (error) => {
    failure ??= error.message;
    // The process failed to start.
    if (child.pid === undefined) end();
  });
  // The `close` event follows the last message, while `exit` may precede it.
  child.once('close', (code, signal) => {
    failure ??= signal ?? `exit code ${code}`;
    end();
  });

  function end(): void {
    if (hasEnded) return;
    hasEnded = true;
    // `/metrics` does not wait for a worker that has exited.
    asking?.resolve();
    onEnd(failure ?? 'unknown');
  }

  return worker;
}
