import type { Changes } from '../../fleet/changes.ts';
import { groupNames } from '../../shared/limits.ts';
import { periodOf } from '../../shared/schema/query-parameters.ts';
import { rowsOf, usageRows } from '../../usage/read/usage-rows.ts';
import {
  type AdminResponse,
  errorResponse,
  foundResponse,
  jsonResponse,
  storeUnavailable,
} from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { getKeyWire } from '../wires/keys/key.ts';
import { listKeysWire } from '../wires/keys/keys.ts';
import { getKeyUsageWire, getMonthUsageWire } from '../wires/keys/usage.ts';
import { entityTag } from './change/definition.ts';
import { findKeys } from './find-keys.ts';
import { type KeyDetailSources, noSuchKey } from './key-sources.ts';
import { listKeys } from './list-keys.ts';
import { monthUsage } from './over-time/month-usage.ts';
import { showKey } from './show-key.ts';

/** The response about a key of the directory that this process has not read before Redis was away. */
function unreadKey(id: string): AdminResponse {
  return storeUnavailable(`, and the key ${id} is not in what this gateway has read before; retry later.`);
}

export function createKeyRoutes(sources: KeyDetailSources, changes: Pick<Changes, 'read'>): readonly Route[] {
  const { adminUsageRowsMax: rowsMax } = sources.bounds;
  return [
    defineRoute({
      ...listKeysWire,
      needs: 'read',
      readsCounts: true,
      respond: async ({ query }) => foundResponse(await listKeys(sources, query)),
    }),
    defineRoute({
      ...getKeyWire,
      needs: 'read',
      readsCounts: true,
      async respond({ params: { id = '' } }) {
        const shown = await showKey(sources, changes, id);
        if (shown === undefined) return noSuchKey();
        if (shown === 'no_store') return unreadKey(id);
        const { detail, version } = shown;
        return { ...jsonResponse(detail), fields: version && { ETag: entityTag(version) } };
      },
    }),
    defineRoute({
      ...getKeyUsageWire,
      needs: 'read',
      readsCounts: true,
      async respond({ params: { id = '' }, query }) {
        const { step } = query;
        const period = periodOf(query, sources.nowMs());
        if ('kind' in period) return errorResponse('invalid_request', period.message);
        const asked = rowsOf({ ...period, step });
        if (asked > rowsMax) {
          const message = `The period has ${asked} rows of one ${step}, and a response has at most ${rowsMax}. Request a shorter period or a longer step.`;
          return errorResponse('invalid_request', message);
        }
        const found = await findKeys(sources, [id]);
        const groups = groupNames(found?.[0]?.key.limits ?? []);
        const rows =
          sources.usage === undefined
            ? []
            : await usageRows(sources.usage, id, { ...period, step, groups }, sources.nowMs());
        // A removed key may have rows.
        if (rows?.length === 0 && found?.length === 0) return noSuchKey();
        return foundResponse(rows && { step, rows });
      },
    }),
    defineRoute({
      ...getMonthUsageWire,
      needs: 'read',
      readsCounts: true,
      async respond({ query }) {
        const page = await monthUsage(sources, query);
        if (page !== 'not_kept') return foundResponse(page);
        const message =
          'This month is not on record: the record goes back 400 days, or one day without Redis.';
        return errorResponse('invalid_request', message);
      },
    }),
  ];
}
