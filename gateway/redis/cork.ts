import { nextTick } from 'node:process';
import type { Writable } from 'node:stream';

/** An ioredis client. Its type omits that it has no stream before its first connection, for example until a Sentinel has named the master. */
interface Client {
  readonly stream: Writable | undefined;
}

/**
 * Delays writes of clients until the current event and its microtasks are done. Commands that are caused by replies that arrived together
 * are therefore sent in one write.
 */
export function createCork(): (clients: readonly Client[]) => void {
  let corked = new Set<Writable>();

  function uncork(): void {
    const streams = corked;
    corked = new Set();
    for (const stream of streams) stream.uncork();
  }

  return (clients) => {
    for (const { stream } of clients) {
      if (stream === undefined || corked.has(stream)) continue;
      if (corked.size === 0) nextTick(uncork);
      corked.add(stream);
      stream.cork();
    }
  };
}
