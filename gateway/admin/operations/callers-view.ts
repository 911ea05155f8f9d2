import type { Period, UsageReader } from '../../usage/usage-reader.ts';
import { findKeys } from '../keys/find-keys.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { keptPeriod } from './kept-period.ts';

/**
 * Who called an operation in a period, most first, of the keys that were active last (10,000 at most): what it costs is one
 * read of each of them and day. Undefined when the store gives no answer.
 */
export async function callersView(
  sources: KeySources,
  operationId: string,
  { limit, ...period }: Period & { readonly limit: number },
): Promise<object | undefined> {
  const { usage, nowMs } = sources;
  const callers =
    usage === undefined
      ? []
      : await usage.reader.callers(operationId, keptPeriod(period, usage.state(), nowMs()));
  const days =
    usage === undefined ? [] : await callsByDay(usage.reader, operationId, usage.state().keptDays, nowMs());
  if (callers === undefined || days === undefined) return undefined;
  const shown = callers.slice(0, limit);
  const found = await findKeys(
    sources,
    shown.map(({ keyId }) => keyId),
  );
  const keys = new Map(found?.map(({ key }) => [key.id, key]));
  return {
    operationId,
    fromAt: new Date(period.fromMs).toISOString(),
    toAt: new Date(period.toMs).toISOString(),
    callers: shown.map(({ keyId, requests, clientErrors, serverErrors, lastMs }) => {
      const key = keys.get(keyId);
      return {
        id: keyId,
        ...(key?.name !== undefined && { name: key.name }),
        // A key that was removed in the meantime is on no plan.
        ...(key && { plan: key.plan }),
        requests,
        clientErrors,
        serverErrors,
        lastSeenMs: lastMs,
      };
    }),
    ...(callers.length > limit && { more: callers.length - limit }),
    days,
  };
}

/** All calls of an operation on each day that is on record, also of keys that are no longer active: whether they become fewer. */
async function callsByDay(
  reader: Pick<UsageReader, 'operations'>,
  operationId: string,
  keptDays: number,
  nowMs: number,
): Promise<readonly object[] | undefined> {
  const today = Math.floor(nowMs / dayMs);
  const days: object[] = [];
  for (let day = today - Math.min(keptDays, trendDaysMax) + 1; day <= today; day++) {
    const used = await reader.operations({ fromMs: day * dayMs, toMs: (day + 1) * dayMs - 1 });
    if (used === undefined) return undefined;
    const requests = used.find((one) => one.operationId === operationId)?.requests ?? 0;
    days.push({ at: `${new Date(day * dayMs).toISOString().slice(0, 19)}Z`, requests });
  }
  return days;
}

const dayMs = 86_400_000;
const trendDaysMax = 14;
