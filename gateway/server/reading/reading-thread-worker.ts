/**
 * The entry point of the thread that `createReadingThread` starts. The thread answers each request with a response, or with the error of a
 * bug.
 */
import { constants, getPriority, platform, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { errorResponse } from '../../admin/admin-response.ts';
import { createReadRoutes } from '../../admin/api/read-routes.ts';
import { type AskThread, createThreadRoutes } from '../../admin/api/thread-routes.ts';
import { applyMessage } from '../../config/settings-message.ts';
import type { Settings } from '../../shared/model.ts';
import { openReadSources } from './read-sources.ts';
import type { FromReading, Lent, ReadingData, ToReading } from './reading-messages.ts';

const data = workerData as ReadingData;
const { bounds } = data;
let settings: Settings | undefined;
let nowMs = 0;
let calls = 0;
const asked = new Map<number, PromiseWithResolvers<unknown>>();
let answering: Promise<AskThread> | undefined;

/** On a busy CPU, a thread with this niceness gets a quarter of the time of a thread with niceness 0. */
const niceness = 5;

// On Linux each thread has its own niceness. The lower priority leaves a busy CPU to the threads that serve clients.
if (platform() === 'linux') {
  setPriority(0, Math.min(getPriority(0) + niceness, constants.priority.PRIORITY_LOW));
}

parentPort?.on('message', (message: ToReading) => {
  switch (message.kind) {
    case 'settings':
      settings = applyMessage(settings, message.message);
      return;
    case 'request':
      nowMs = message.nowMs;
      void respond(message);
      return;
    case 'reply':
      asked.get(message.number)?.resolve(message.value);
      asked.delete(message.number);
  }
});

async function respond({ number, request }: Extract<ToReading, { kind: 'request' }>): Promise<void> {
  try {
    answering ??= open();
    const answer = await answering;
    const { body, ...response } = await answer(request);
    // No other code uses these octets, so the buffer is transferred and not copied.
    const octets = new TextEncoder().encode(String(body));
    tell({ kind: 'response', number, response, body: octets }, [octets.buffer]);
  } catch (error) {
    if (error !== late) return tell({ kind: 'failed', number, error });
    const { body, ...response } = errorResponse('busy', undefined, { 'Retry-After': '1' });
    tell({ kind: 'response', number, response, body: new TextEncoder().encode(String(body)) });
  }
}

async function open(): Promise<AskThread> {
  const sources = await openReadSources({ data, settings: inForce, nowMs: () => nowMs, lent });
  return createThreadRoutes(createReadRoutes(sources), bounds);
}

function inForce(): Settings {
  if (settings === undefined) throw new Error('a request came before the settings');
  return settings;
}

/** The main thread sent no reply in time. */
const late = new Error('no reply within the deadline');

/** Calls functions of the main thread by name. */
const lent = new Proxy({} as Lent, {
  get:
    (_, name) =>
    (...args: readonly unknown[]) => {
      const number = ++calls;
      const reply = Promise.withResolvers<unknown>();
      asked.set(number, reply);
      tell({ kind: 'call', number, name: name as keyof Lent, args });
      const timer = setTimeout(() => {
        asked.delete(number);
        reply.reject(late);
      }, bounds.readingCallTimeoutMs);
      return reply.promise.finally(() => clearTimeout(timer));
    },
});

function tell(message: FromReading, handedOver: ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, handedOver);
}
