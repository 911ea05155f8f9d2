import { AsyncLocalStorage } from 'node:async_hooks';
import type { StoreState } from '../../request/limit/limiter.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { AdminResponse } from '../admin-response.ts';

/** Whether the response in progress lacks data, because Redis did not reply. */
const inProgress = new AsyncLocalStorage<{ isMissing: boolean }>();

/** Notes that the response in progress lacks data that only Redis has. */
export function noteMissing(): void {
  const response = inProgress.getStore();
  if (response !== undefined) response.isMissing = true;
}

/** Whether the response in progress lacks data so far. */
export function lacksData(): boolean {
  return inProgress.getStore()?.isMissing ?? false;
}

/** Makes a response, and returns whether it lacks data. */
export async function noteWhile(
  respond: () => Promise<AdminResponse>,
): Promise<{ readonly response: AdminResponse; readonly isMissing: boolean }> {
  const noted = { isMissing: false };
  const response = await inProgress.run(noted, respond);
  return { response, isMissing: noted.isMissing };
}

/** The time since which Redis or one of its servers is away, epoch ms; undefined while none is. */
export function awaySinceMs(store: StoreState): number | undefined {
  if (store.kind === 'memory' || store.available) return undefined;
  const away = (store.servers ?? [store]).filter(({ available }) => !available);
  return Math.min(...away.map(({ since }) => Date.parse(since)));
}

/** @param sinceMs the time since which Redis is away, epoch ms; undefined if the process does not know that it is away */
export function withMissing(response: AdminResponse, sinceMs: number | undefined): AdminResponse {
  const missing = { sinceAt: isoOf(sinceMs) };
  return { ...response, body: JSON.stringify({ ...JSON.parse(String(response.body)), missing }) };
}
