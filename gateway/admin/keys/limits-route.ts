import type { Changes } from '../../fleet/changes.ts';
import { plansAt } from '../../keys/plans.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { instant, queryOf } from '../api/query-parameters.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { readPages } from '../read-pages.ts';
import { findKeys, statusesOf } from './find-keys.ts';
import type { KeySources } from './key-sources.ts';
import { limitsOverTime } from './limits-over-time.ts';

const dayMs = 86_400_000;

/** `GET /keys/{id}/limits`: the limits of a key over a period, from the record of changes. */
export function limitsRoute({
  keys,
  changes,
  bounds,
}: {
  readonly keys: KeySources;
  readonly changes: Pick<Changes, 'read'>;
  readonly bounds: Pick<Bounds, 'changesPerPageMax' | 'limitChangesReadMax'>;
}): Route {
  return defineRoute({
    method: 'GET',
    path: '/keys/{id}/limits',
    needs: 'read',
    query: queryOf({ from: instant().optional() }),
    async respond({ params: { id = '' }, query }) {
      const toMs = keys.nowMs();
      const fromMs = query.from ?? toMs - dayMs;
      if (fromMs > toMs) {
        return errorResponse('invalid_request', 'The query parameter `from` must not be in the future.');
      }
      const found = await findKeys(keys, [id]);
      const [listed] = found ?? [];
      if (found !== undefined && listed === undefined) {
        return errorResponse('not_found', 'There is no key with this id.');
      }
      const status = (await statusesOf(keys, found ?? []))?.get(id);
      if (listed === undefined || status === undefined) return storeUnavailable();
      const { grant } = status;
      const limits = limitsOverTime({
        key: listed.key,
        plans: plansAt(keys.settings(), toMs),
        grant,
        // Also from before the period, because a grant of then may have held in it.
        changes: await readPages(
          async (after) => {
            const { changes: entries, next } = await changes.read({ limit: bounds.changesPerPageMax, after });
            return { entries, next };
          },
          (_, all) => all.length >= bounds.limitChangesReadMax,
        ),
        fromMs,
        toMs,
      });
      return jsonResponse({ limits });
    },
  });
}
