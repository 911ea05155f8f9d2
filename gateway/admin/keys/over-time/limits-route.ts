import type { Changes, RecordedChange } from '../../../fleet/changes.ts';
import type { Grant } from '../../../shared/model.ts';
import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { dayMs } from '../../../shared/words/figures.js';
import { errorResponse, jsonResponse, storeUnavailable } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { readPages } from '../../read-pages.ts';
import { getKeyLimitsWire, type LimitsSteps } from '../../wires/keys/usage.ts';
import { findKeys, type ListedKey, statusesOf } from '../find-keys.ts';
import { type KeySources, noSuchKey } from '../key-sources.ts';
import { limitsOverTime } from './limits-over-time.ts';

/** `GET /keys/{id}/limits` computes the limits of a key over a period from the record of changes. */
export function limitsRoute(keys: KeySources, changes: Pick<Changes, 'read'>): Route {
  return defineRoute({
    ...getKeyLimitsWire,
    needs: 'read',
    async respond({ params: { id = '' }, query }) {
      const toMs = keys.nowMs();
      const fromMs = query.from ?? toMs - dayMs;
      if (fromMs > toMs) {
        return errorResponse('invalid_request', 'The query parameter `from` must not be in the future.');
      }
      const found = await findKeys(keys, [id]);
      const [listed] = found ?? [];
      if (found !== undefined && listed === undefined) {
        return noSuchKey();
      }
      const status = (await statusesOf(keys, found ?? []))?.get(id);
      if (listed === undefined || status === undefined) return storeUnavailable();
      const { grant } = status;
      return jsonResponse({ limits: await readLimits(keys, changes, { listed, grant }, { fromMs, toMs }) });
    },
  });
}

/** Computes the limits of a key over a period. */
export async function readLimits(
  { settings, bounds }: Pick<KeySources, 'settings' | 'bounds'>,
  changes: Pick<Changes, 'read'>,
  { listed, grant }: { readonly listed: ListedKey; readonly grant: Grant | undefined },
  period: Period,
): Promise<LimitsSteps> {
  const { plans, planStates } = settings();
  return limitsOverTime({
    key: listed.key,
    stated: listed.stated,
    ...{ plans, planStates, grant },
    // Changes before the period are read too, because a grant may begin before the period and still apply in the
    // period.
    changes: await readChanges(changes, bounds),
    ...period,
  });
}

/** Reads the changes from which the limits of a key over time are computed, the newest first. */
export function readChanges(
  changes: Pick<Changes, 'read'>,
  bounds: Bounds,
): Promise<readonly RecordedChange[]> {
  return readPages(
    async (after) => {
      const { changes: entries, next } = await changes.read({ limit: bounds.changesPerPageMax, after });
      return { entries, next };
    },
    (_, all) => all.length >= bounds.limitChangesReadMax,
  );
}
