import type { Changes } from '../../fleet/changes.ts';
import { periodQuery, queryOf } from '../../shared/schema/query-parameters.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { defineWire, keyIdParameter } from '../api/wire.ts';
import { readPages } from '../read-pages.ts';
import { findKeys, statusesOf } from './find-keys.ts';
import { type KeySources, noSuchKey } from './key-sources.ts';
import { limitsOverTime, limitsSteps } from './limits-over-time.ts';

const dayMs = 86_400_000;

export const getKeyLimitsWire = defineWire({
  method: 'GET',
  path: '/keys/{id}/limits',
  operationId: 'getKeyLimits',
  tag: 'Keys',
  summary: 'The limits of a key over time',
  description:
    'The limits of a key from `from` until now, with one entry for each change. The gateway computes these limits from the present limits, by undoing the recorded changes: edits of plans and of the key, and grants. The gateway reads the newest 2,000 changes. The limits before the oldest of these changes are shown for all earlier times. Edits that were made while no gateway was running are not recorded. A reload that changed more than 5 keys records only the first 5. The limits of the other keys before the reload are unknown, so their present limits are shown.',
  params: { id: keyIdParameter },
  query: queryOf({ from: periodQuery.from }),
  answers: { 200: { description: 'The entries, the oldest first.', schema: limitsSteps } },
});

/** `GET /keys/{id}/limits` computes the limits of a key over a period from the record of changes. */
export function limitsRoute(keys: KeySources, changes: Pick<Changes, 'read'>): Route {
  const { bounds } = keys;
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
      const limits = limitsOverTime({
        key: listed.key,
        plans: keys.settings().plans,
        reverts: keys.settings().reverts,
        grant,
        // Changes before the period are read too, because a grant may begin before the period and still apply in the
        // period.
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
