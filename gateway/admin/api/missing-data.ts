import { AsyncLocalStorage } from 'node:async_hooks';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { type AdminResponse, storeUnavailable } from '../admin-response.ts';

/** Whether the response in progress lacks data, because Redis did not reply. */
const inProgress = new AsyncLocalStorage<{ isMissing: boolean }>();

/** Notes that the response in progress lacks data that only Redis has. */
export function noteMissing(): void {
  const response = inProgress.getStore();
  if (response !== undefined) response.isMissing = true;
}

/**
 * Makes a response, and adds the member `missing` if the response lacks data.
 *
 * @param awaySinceMs the time since which Redis is away, epoch ms; undefined if the process does not know that it is away. Without this
 *   function, a response that lacks data becomes an error
 */
export async function withMissing(
  respond: () => Promise<AdminResponse>,
  awaySinceMs: (() => Promise<number | undefined>) | undefined,
): Promise<AdminResponse> {
  const noted = { isMissing: false };
  const response = await inProgress.run(noted, respond);
  if (!noted.isMissing || response.status !== 200) return response;
  if (awaySinceMs === undefined) return storeUnavailable();
  const missing = { sinceAt: isoOf(await awaySinceMs()) };
  return { ...response, body: JSON.stringify({ ...JSON.parse(String(response.body)), missing }) };
}
