import { setTimeout as sleep } from 'node:timers/promises';
import { pageOfIds } from '../../../admin/keys/find-keys.ts';
import type { KeySources } from '../../../admin/keys/key-sources.ts';
import { planNameAt } from '../../../keys/plans/compile-key.ts';
import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import { type FailedHour, unitsIn } from '../../../usage/read/failed-units.ts';
import type { UsageReader } from '../../../usage/read/usage-reader.ts';
import type { Credits } from '../credits/credits.ts';
import type { CreditRun } from '../credits/give-back.ts';
import type { MakegoodFigures } from '../wires.ts';
import { addParts, noFigures } from './add-parts.ts';

export interface PartSources {
  readonly keys: Pick<KeySources, 'settings' | 'directory' | 'nowMs' | 'bounds'>;
  readonly reader: Pick<UsageReader, 'failedUnits'>;
  readonly credits: Pick<Credits, 'giveBack'>;
}

export interface Asked {
  readonly period: Period;
  /** Only requests for this upstream are given back. */
  readonly upstream?: string | undefined;
  /** Only keys that are on this plan now get units back. */
  readonly plan?: string | undefined;
}

export interface PartDone {
  readonly figures: MakegoodFigures;
  /** The last key of this part if there are more keys. */
  readonly last?: string | undefined;
  /** Whether the part ended early because the store did not reply. */
  readonly isAway: boolean;
}

/**
 * Gives failed units back to the keys that follow the key `after`, for a limited time. The function visits all keys of the configuration and
 * of the directory, because the index of active keys may lack keys. After each group of keys, the function pauses, so that other requests
 * are served.
 */
export async function runPart(
  { keys, reader, credits }: PartSources,
  { period, upstream: only, plan }: Asked,
  run: CreditRun,
  after: string,
): Promise<PartDone> {
  const { settings, directory, bounds } = keys;
  const { makegoodKeysAtOnce: atOnce, makegoodKeysNamedMax: namedMax } = bounds;
  const known = settings().upstreams.map(({ name }) => name);
  const deadlineMs = performance.now() + bounds.makegoodPartMs;
  let figures = noFigures;
  let last = after;
  do {
    const page = await pageOfIds(keys, { after: last, limit: atOnce });
    if (page === undefined) return { figures, last, isAway: true };
    const ids = page.ids.filter(mayBeOnPlan);
    const found = await reader.failedUnits(ids, period, { known, only });
    if (found === undefined) return { figures, last, isAway: true };
    const credited = await Promise.all(ids.map((id, index) => creditKey(id, found[index])));
    figures = addParts(figures, sumOf(credited), namedMax);
    if (page.next === undefined) return { figures, isAway: false };
    last = page.next;
    await sleep(bounds.makegoodPauseMs);
  } while (performance.now() < deadlineMs);
  return { figures, last, isAway: false };

  async function creditKey(
    keyId: string,
    failed: readonly FailedHour[] | undefined,
  ): Promise<MakegoodFigures> {
    const examined = { ...noFigures, examinedKeys: 1 };
    if (failed?.length === 0) return examined;
    const isWanted = await isOnPlan(keyId);
    if (isWanted === false) return examined;
    const given =
      failed === undefined || isWanted === 'unknown'
        ? undefined
        : await credits.giveBack({ keyId, failed, run });
    if (failed === undefined || given?.kind !== 'given') {
      return { ...examined, unreadKeys: 1, unread: [keyId] };
    }
    return {
      ...examined,
      keys: 1,
      failedUnits: unitsIn(failed),
      creditedKeys: given.units.day + given.units.month > 0 ? 1 : 0,
      givenBack: given.units,
    };
  }

  /** The plan of a key of the directory is read only if the key has failed units. */
  function mayBeOnPlan(id: string): boolean {
    const configured = settings().keys.get(id);
    return plan === undefined || configured === undefined || configured.plan === plan;
  }

  /** Whether a key is on the wanted plan now. The id may belong to a key of the directory, or to a key that was just deleted. */
  async function isOnPlan(id: string): Promise<boolean | 'unknown'> {
    if (plan === undefined) return true;
    const configured = settings().keys.get(id);
    if (configured !== undefined || directory === undefined) return configured?.plan === plan;
    const read = await directory.readMany([id]);
    const [key] = read.kind === 'found' ? read.keys : ['unknown' as const];
    if (key === 'unknown') return 'unknown';
    return key !== undefined && planNameAt(key, keys.nowMs()) === plan;
  }

  function sumOf(all: readonly MakegoodFigures[]): MakegoodFigures {
    return all.reduce((sum, one) => addParts(sum, one, namedMax), noFigures);
  }
}
