import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Checks the condition repeatedly until it is true. Many conditions send requests to the gateway. The pauses become longer, so that these
 * requests do not slow a busy gateway.
 *
 * @throws when the condition is still false after `timeoutMs`
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 120_000,
): Promise<void> {
  const startMs = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - startMs;
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await sleep(Math.min(Math.max(10, waitedMs / 10), 100));
  }
}
