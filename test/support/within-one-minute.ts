import { setTimeout as sleep } from 'node:timers/promises';

const minuteMs = 60_000;

/**
 * Waits for the next calendar minute if less than the given time remains in the current minute. Windows are fixed, so requests that are
 * counted together must not cross the end of a minute.
 */
export async function withinOneMinute(neededMs: number): Promise<void> {
  const leftMs = minuteMs - (Date.now() % minuteMs);
  if (leftMs < neededMs) await sleep(leftMs + 50);
}
