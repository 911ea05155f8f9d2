import type { CountedRefusal } from '../../capabilities/interfaces/words.ts';
import { countedRefusals } from '../../capabilities/lists/words.js';
import { didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import { isoOf, isoSecondOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import { periodOf } from '../../shared/schema/query-parameters.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { Caller } from '../../usage/read/operations-reader.ts';
import type { UsageReader } from '../../usage/read/usage-reader.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { findKnownKeys } from '../keys/find-keys.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { type CallerShown, type Callers, listCallersWire } from '../wires/operations.ts';
import { keptHours, recordFromAt } from './kept-period.ts';

const refused: readonly CountedRefusal[] = countedRefusals;

/** `GET /operations/{operationId}/callers` */
export function callersRoute(sources: KeySources): Route {
  return defineRoute({
    ...listCallersWire,
    needs: 'read',
    readsCounts: true,
    async respond({ params: { operationId = '' }, query }) {
      const period = periodOf(query, sources.nowMs());
      if ('kind' in period) return errorResponse('invalid_request', period.message);
      const ids = sources.settings().operations.map(({ id }) => id);
      if (!ids.includes(operationId)) {
        const advice = didYouMean(operationId, ids) || `; operations are: ${listNames(ids)}.`;
        return errorResponse('not_found', `There is no operation ${operationId}${advice}`);
      }
      return foundResponse(await callersView(sources, operationId, { ...period, limit: query.limit }));
    },
  });
}

/**
 * Lists the callers of an operation in a period, the most active first. Only the 10,000 keys that were active last are
 * read. Each key costs one read for each day of the period. The result is undefined when the store does not reply.
 */
async function callersView(
  sources: KeySources,
  operationId: string,
  { limit, ...period }: Period & { readonly limit: number },
): Promise<Callers | undefined> {
  const { usage, nowMs } = sources;
  const called = (await callersOf(sources, [operationId], period))?.get(operationId);
  const days =
    usage === undefined ? [] : await callsByDay(usage.reader, operationId, usage.state().keptDays, nowMs());
  if (called === undefined || days === undefined) return undefined;
  const shown = called.slice(0, limit);
  return {
    operationId,
    fromAt: isoOf(period.fromMs),
    toAt: isoOf(period.toMs),
    recordFromAt: recordFromAt(period, usage, nowMs()),
    callers: shown.map(await callerNamer(sources, shown)),
    more: called.length > limit ? called.length - limit : undefined,
    days,
  };
}

/** Returns the callers of each operation in a period; undefined when the store does not reply. */
export async function callersOf(
  { usage, nowMs }: KeySources,
  operationIds: readonly string[],
  period: Period,
): Promise<ReadonlyMap<string, readonly Caller[]> | undefined> {
  if (usage === undefined || operationIds.length === 0) return new Map(operationIds.map((id) => [id, []]));
  const names = refused.map(({ name }) => name);
  return await usage.reader.callers(operationIds, keptHours(period, usage.state(), nowMs()), names);
}

/** Reads the keys of all callers together. Returns the function that makes the response's form of a caller. */
export async function callerNamer(
  sources: KeySources,
  callers: readonly Caller[],
): Promise<(caller: Caller) => CallerShown> {
  const found = await findKnownKeys(sources, [...new Set(callers.map(({ keyId }) => keyId))]);
  const read = found?.filter(({ isUnread }) => !isUnread);
  const keys = new Map(read?.map(({ key }) => [key.id, key]));
  return ({ keyId, requests, clientErrors, serverErrors, lastMs, refusals }) => ({
    id: keyId,
    name: keys.get(keyId)?.name,
    plan: keys.get(keyId)?.plan,
    requests,
    clientErrors,
    serverErrors,
    lastSeenMs: lastMs,
    ...refusedOf(refusals, lastMs),
  });
}

/** The refusals of a caller that capabilities count by name, each as a member of a caller. @param lastMs the last call */
function refusedOf(refusals: Caller['refusals'], lastMs: number): Partial<CallerShown> {
  return Object.fromEntries(
    refused.flatMap(({ name, member }) => {
      const counted = refusals.get(name);
      if (counted === undefined) return [];
      const stillCalls = lastMs > counted.lastMs;
      return [[member, { requests: counted.requests, lastAt: isoOf(counted.lastMs), stillCalls }]];
    }),
  );
}

/**
 * Returns the calls of an operation on each recorded day, including calls of inactive keys. An operator can see from
 * the result whether the number of calls decreases.
 */
async function callsByDay(
  reader: Pick<UsageReader, 'operations'>,
  operationId: string,
  keptDays: number,
  nowMs: number,
): Promise<Callers['days'] | undefined> {
  const today = Math.floor(nowMs / dayMs);
  const days: Callers['days'][number][] = [];
  for (let day = today - Math.min(keptDays, trendDaysMax) + 1; day <= today; day++) {
    const used = await reader.operations({ fromMs: day * dayMs, toMs: (day + 1) * dayMs - 1 });
    if (used === undefined) return undefined;
    const requests = used.find((one) => one.operationId === operationId)?.requests ?? 0;
    days.push({ at: isoSecondOf(day * dayMs), requests });
  }
  return days;
}

const trendDaysMax = 14;
