import { didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import { type AdminResponse, errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { instant, month, oneOf, queryOf, text, wholeNumber } from '../api/query-parameters.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { callersView } from '../operations/callers-view.ts';
import { operationsView } from '../operations/operations-view.ts';
import { trafficSteps, trafficView } from '../operations/traffic-view.ts';
import { entityTag } from './change/definition.ts';
import { findKeys } from './find-keys.ts';
import { keyStates } from './key-item.ts';
import type { KeySources } from './key-sources.ts';
import { keySorts, listKeys } from './list-keys.ts';
import { monthUsage } from './month-usage.ts';
import { showKey } from './show-key.ts';
import { rowsOf, usageRows, usageSteps } from './usage-rows.ts';

const pageMax = 500;
const pageDefault = 50;
/** All that are known: whoever writes to them needs each. */
const callersMax = 10_000;
const dayMs = 86_400_000;
const trafficDaysMax = 8;

const period = { from: instant().optional(), to: instant().optional() };

/** The routes that read keys and operations with their usage. */
export function createKeyRoutes(sources: KeySources): readonly Route[] {
  const { adminUsageRowsMax: rowsMax } = sources.bounds;
  return [
    defineRoute({
      method: 'GET',
      path: '/keys',
      needs: 'read',
      query: queryOf({
        state: oneOf(keyStates).optional(),
        plan: text(64).optional(),
        q: text(64).optional(),
        sort: oneOf(keySorts).default('refused'),
        after: text(128).optional(),
        limit: wholeNumber(1, pageMax).default(pageDefault),
      }),
      respond: async ({ query }) => found(await listKeys(sources, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/keys/{id}',
      needs: 'read',
      query: queryOf({}),
      async respond({ params: { id = '' } }) {
        const shown = await showKey(sources, id);
        if (shown === undefined) return noSuchKey();
        if (shown === 'no_store') return storeUnavailable();
        const { detail, version } = shown;
        return { ...jsonResponse(detail), ...(version && { fields: { ETag: entityTag(version) } }) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/keys/{id}/usage',
      needs: 'read',
      query: queryOf({ ...period, step: oneOf(usageSteps).default('minute') }),
      async respond({ params: { id = '' }, query: { step, ...asked } }) {
        const within = periodOf(asked);
        if (typeof within === 'string') return errorResponse('invalid_request', within);
        const query = { ...within, step };
        if (rowsOf(query) > rowsMax) {
          const message = `So many rows are not sent at once: ${rowsOf(query)} of one ${step}. Ask for at most ${rowsMax}, or for longer steps.`;
          return errorResponse('invalid_request', message);
        }
        // A key that was removed from the configuration may still have a record.
        const rows = await usageRows(sources, id, query);
        if (rows?.length === 0 && (await findKeys(sources, [id]))?.length === 0) return noSuchKey();
        return found(rows && { step, rows });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/usage',
      needs: 'read',
      query: queryOf({
        month: month().optional(),
        after: text(128).optional(),
        limit: wholeNumber(1, pageMax).default(pageMax),
      }),
      async respond({ query }) {
        const page = await monthUsage(sources, query);
        if (page !== 'not_kept') return found(page);
        const message =
          'Nothing of this month is on record: the record goes back 400 days, and a day without Redis.';
        return errorResponse('invalid_request', message);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/traffic',
      needs: 'read',
      query: queryOf({ ...period, step: oneOf(trafficSteps).default('minute') }),
      async respond({ query: { step, ...asked } }) {
        const within = periodOf(asked);
        if (typeof within === 'string') return errorResponse('invalid_request', within);
        if (within.toMs - within.fromMs > trafficDaysMax * dayMs) {
          const message = `The query parameters \`from\` and \`to\` must not be more than ${trafficDaysMax} days apart.`;
          return errorResponse('invalid_request', message);
        }
        return found(await trafficView(sources, { ...within, step }));
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/operations',
      needs: 'read',
      query: queryOf(period),
      async respond({ query }) {
        const within = periodOf(query);
        if (typeof within === 'string') return errorResponse('invalid_request', within);
        return found(await operationsView(sources, within));
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/operations/{operationId}/callers',
      needs: 'read',
      query: queryOf({ ...period, limit: wholeNumber(1, callersMax).default(pageDefault) }),
      async respond({ params: { operationId = '' }, query: { limit, ...asked } }) {
        const within = periodOf(asked);
        if (typeof within === 'string') return errorResponse('invalid_request', within);
        const ids = sources.settings().operations.map(({ id }) => id);
        if (!ids.includes(operationId)) {
          const advice = didYouMean(operationId, ids) || `; operations are: ${listNames(ids)}.`;
          return errorResponse('not_found', `There is no operation ${operationId}${advice}`);
        }
        return found(await callersView(sources, operationId, { ...within, limit }));
      },
    }),
  ];

  /** The last 24 hours, unless something else is asked for; a sentence where that makes no sense. */
  function periodOf({ from, to }: { from?: number | undefined; to?: number | undefined }) {
    const nowMs = sources.nowMs();
    const toMs = to ?? nowMs;
    const fromMs = from ?? Math.floor(toMs / 60_000) * 60_000 - dayMs + 60_000;
    if (fromMs > toMs) return 'The query parameter `from` must not be later than `to`.';
    if (toMs - fromMs > 400 * dayMs)
      return 'The query parameters `from` and `to` must not be more than 400 days apart.';
    return { fromMs, toMs };
  }
}

/** Undefined: the store gave no answer. */
function found(body: object | undefined): AdminResponse {
  return body === undefined ? storeUnavailable() : jsonResponse(body);
}

function noSuchKey(): AdminResponse {
  return errorResponse('not_found', 'There is no key with this id.');
}
