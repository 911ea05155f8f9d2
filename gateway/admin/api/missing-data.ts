import { AsyncLocalStorage } from 'node:async_hooks';
import type { StoreState } from '../../request/limit/limiter.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { type AdminResponse, storeUnavailable } from '../admin-response.ts';
import { awayText } from '../words/list.js';

/** The entries that a response may lack while Redis is away, as a plural for a sentence. */
export type Lacking =
  | 'changes'
  | 'deliveries'
  | 'details of keys'
  | 'events'
  | 'keys'
  | 'processes'
  | 'requests';

/** Since when and why Redis is away. `sinceAt` and `reason` are undefined if the process does not know that Redis is away. */
export interface Outage {
  /** The start of this gateway, with which its own counts begin. */
  readonly countsFromAt: string;
  readonly sinceAt?: string | undefined;
  readonly reason?: string | undefined;
}

/** What the response in progress lacks, because Redis did not reply. */
const inProgress = new AsyncLocalStorage<Set<Lacking>>();

/** Notes that the response in progress lacks data that only Redis has. */
export function noteMissing(what: Lacking): void {
  inProgress.getStore()?.add(what);
}

/** Whether the response in progress lacks data so far. */
export function lacksData(): boolean {
  return (inProgress.getStore()?.size ?? 0) > 0;
}

/** Makes a response, and returns what it lacks. */
export async function noteWhile(
  respond: () => Promise<AdminResponse>,
): Promise<{ readonly response: AdminResponse; readonly what: readonly Lacking[] }> {
  const noted = new Set<Lacking>();
  const response = await inProgress.run(noted, respond);
  return { response, what: [...noted] };
}

export function outageOf(store: StoreState, countsFromAt: string): Outage {
  if (store.kind === 'memory' || store.available) return { countsFromAt };
  const away = (store.servers ?? [store]).filter(({ available }) => !available);
  const sinceMs = Math.min(...away.map(({ since }) => Date.parse(since)));
  return { countsFromAt, sinceAt: isoOf(sinceMs), reason: store.reason };
}

export function withMissing(
  response: AdminResponse,
  what: readonly Lacking[],
  outage: Outage,
): AdminResponse {
  const missing = { ...outage, what };
  return { ...response, body: JSON.stringify({ ...JSON.parse(String(response.body)), missing }) };
}

/** Says in an error since when and why Redis is away. */
export function withOutage(response: AdminResponse, outageNow: () => Outage): AdminResponse {
  const { withoutRedis: rest } = response;
  if (rest === undefined) return response;
  const outage = outageNow();
  if (outage.sinceAt === undefined) return response;
  return storeUnavailable(rest, `${awayText(outage)} (${outage.reason})`);
}
