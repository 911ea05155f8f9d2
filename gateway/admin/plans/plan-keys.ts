import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { lacksData } from '../api/missing-data.ts';
import { findKnownKeys, type ListedKey } from '../keys/find-keys.ts';
import type { KeySources } from '../keys/key-sources.ts';

/** Responses about a plan read the usage record of each active key of the plan. The time for these reads is limited. */

/**
 * Finds the keys of a plan that sent a request since `fromMs`, the most recently active key first. Only the 10,000 keys
 * that were active last are considered. A key that could not be read is in no plan. The result is undefined when the store does not reply.
 */
export async function activeKeysOf(
  sources: Omit<KeySources, 'readStatus'>,
  plan: string,
  fromMs: number,
): Promise<readonly ListedKey[] | undefined> {
  const active = sources.usage === undefined ? [] : await sources.usage.reader.active();
  if (active === undefined) return undefined;
  const lately = active.filter(({ lastSeenMs }) => lastSeenMs >= fromMs).map(({ keyId }) => keyId);
  return (await findKnownKeys(sources, lately))?.filter(({ key }) => key.plan === plan);
}

/**
 * Reads data of each key, a few keys at a time, until the time limit. The result has the order of the keys, and may be
 * shorter than `ids`. The result is undefined when the store does not reply.
 *
 * @param keysPerTurn the number of keys that one call of `read` gets
 */
export async function readUntilDeadline<Data>(
  ids: readonly string[],
  keysPerTurn: number,
  read: (part: readonly string[]) => Promise<readonly Data[] | undefined>,
  { planDistributionTimeoutMs }: Pick<Bounds, 'planDistributionTimeoutMs'>,
): Promise<readonly Data[] | undefined> {
  const deadlineMs = performance.now() + planDistributionTimeoutMs;
  const all: Data[] = [];
  for (let from = 0; from < ids.length && performance.now() < deadlineMs; from += keysPerTurn) {
    const part = await read(ids.slice(from, from + keysPerTurn));
    if (part === undefined) return undefined;
    all.push(...part);
    // The pause lets the event loop serve other requests.
    await nextTurn();
  }
  return all;
}

/**
 * Caches the results of an expensive computation for a short time, by name. Requests that arrive during a computation
 * wait for the same result. An undefined or incomplete result is not cached.
 */
export function createKeptResults<Result>({
  planDistributionKeptMs: keptMs,
}: Pick<Bounds, 'planDistributionKeptMs'>): (
  name: string,
  make: () => Promise<Result | undefined>,
) => Promise<Result | undefined> {
  const kept = new Map<string, { readonly untilMs: number; readonly made: Promise<Result | undefined> }>();

  return (name, make) => {
    for (const [other, { untilMs }] of kept) if (untilMs <= performance.now()) kept.delete(other);
    const known = kept.get(name);
    if (known !== undefined) return known.made;
    const made = make();
    kept.set(name, { untilMs: Number.POSITIVE_INFINITY, made });
    const keep = (ms: number) => kept.set(name, { untilMs: performance.now() + ms, made });
    made.then(
      (found) => keep(found === undefined || lacksData() ? 0 : keptMs),
      () => keep(0),
    );
    return made;
  };
}
