import type { Period } from '../../usage/usage-reader.ts';
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
  if (callers === undefined) return undefined;
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
  };
}
