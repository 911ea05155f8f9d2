import { nextTick } from 'node:process';
import type { Writable } from 'node:stream';

/**
 * Delays writes to streams until the current event and its microtasks are done. Commands that are caused by replies that arrived together
 * are therefore sent in one write.
 */
export function createCork(): (streams: readonly Writable[]) => void {
  let corked = new Set<Writable>();

  function uncork(): void {
    const streams = corked;
    corked = new Set();
    for (const stream of streams) stream.uncork();
  }

  return (streams) => {
    for (const stream of streams) {
      if (corked.has(stream)) continue;
      if (corked.size === 0) nextTick(uncork);
      corked.add(stream);
      stream.cork();
    }
  };
}
