import type { MessagePort } from 'node:worker_threads';
import { errorResponse } from '../../admin/admin-response.ts';
import { createReadRoutes } from '../../admin/api/read-routes.ts';
import { type AskThread, createThreadRoutes } from '../../admin/api/thread-routes.ts';
import { applyMessage } from '../../config/loader/settings-message.ts';
import type { Leak, Settings } from '../../shared/model.ts';
import { openReadSources } from './read-sources.ts';
import type { FromReading, Lent, ReadingData, ToReading } from './reading-messages.ts';

/**
 * Answers the requests that arrive at a message port. Each answer is a response, or an error that a bug has caused. When the port is
 * closed, the connection to Redis is closed too.
 */
export function answerReading(port: MessagePort, data: ReadingData): void {
  const { bounds } = data;
  let settings: Settings | undefined;
  let nowMs = 0;
  let leaks: ReadonlyMap<string, Leak> = new Map();
  let calls = 0;
  const asked = new Map<number, PromiseWithResolvers<unknown>>();
  let answering: Promise<AskThread> | undefined;
  const closed = new AbortController();

  port.on('close', () => closed.abort());
  port.on('message', (message: ToReading) => {
    switch (message.kind) {
      case 'settings':
        settings = applyMessage(settings, message.message, message.nowMs);
        return;
      case 'leaks':
        leaks = new Map(message.leaked.map(({ digest, leak }) => [digest, leak]));
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
    const sources = await openReadSources({
      data,
      settings: inForce,
      nowMs: () => nowMs,
      leakOf: (digest) => leaks.get(digest),
      lent,
      closed: closed.signal,
    });
    return createThreadRoutes(await createReadRoutes(sources), () => lent.outage(), bounds);
  }

  function inForce(): Settings {
    if (settings === undefined) throw new Error('a request came before the settings');
    return settings;
  }

  /** Each call of a member of `lent` calls the function of the main thread with the same name. */
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
    port.postMessage(message, handedOver);
  }
}

/** The main thread sent no reply in time. */
const late = new Error('no reply within the deadline');
