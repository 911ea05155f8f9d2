import { groupNames } from '../../shared/limits.ts';
import {
  month,
  oneOf,
  periodOf,
  periodQuery,
  queryOf,
  text,
  wholeNumber,
} from '../../shared/schema/query-parameters.ts';
import { rowsOf, usageRows, usageSteps } from '../../usage/read/usage-rows.ts';
import { errorResponse, foundResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { defineWire, keyIdParameter } from '../api/wire.ts';
import { entityTag } from './change/definition.ts';
import { findKeys } from './find-keys.ts';
import { keyStates } from './key-item.ts';
import { type KeyDetailSources, noSuchKey } from './key-sources.ts';
import { keyPage, keySorts, listKeys } from './list-keys.ts';
import { monthPage, monthUsage } from './month-usage.ts';
import { keyDetail, showKey } from './show-key.ts';
import { keyUsage } from './usage-rows.ts';

const pageMax = 500;

export const listKeysWire = defineWire({
  method: 'GET',
  path: '/keys',
  operationId: 'listKeys',
  tag: 'Keys',
  summary: 'A list of keys',
  description:
    'A page of the keys. By default, the keys with the most refused requests come first. In every order except `id`, at most 10,000 recently active keys come first, and all other keys follow by id. The cost depends only on the number of active keys: about 30 ms with 1,000 active keys. With `state`, the gateway checks at most 10,000 keys for a page, so a page with few keys may still have a `next`. Without a usage record, the keys are sorted by id.',
  query: queryOf({
    state: oneOf(keyStates).optional().describe('Only keys in this state.'),
    plan: text(64).optional().describe('Only keys on this plan.'),
    q: text(64)
      .optional()
      .describe(
        'Only keys whose id or name contains this text, in upper or lower case. Keys of the key directory without recent requests are found only by the beginning of their id.',
      ),
    sort: oneOf(keySorts)
      .default('refused')
      .describe(
        'Sorts by the refused or offered requests of the last 24 hours, by the last request, or by id.',
      ),
    after: text(128).optional().describe('The `next` of the previous page.'),
    limit: wholeNumber(1, pageMax).default(50).describe('The largest number of entries.'),
  }),
  answers: { 200: { description: 'The keys.', schema: keyPage } },
});

export const getKeyWire = defineWire({
  method: 'GET',
  path: '/keys/{id}',
  operationId: 'getKey',
  tag: 'Keys',
  summary: 'Everything about a key',
  description: `A key, its secrets, its requests of the last 24 hours, and the explanation of its responses. The ETag can be used in If-Match. The ETag is the version of the key's definition in the key directory, so requests of the key do not change the ETag.`,
  params: { id: keyIdParameter },
  answers: { 200: { description: 'The key.', schema: keyDetail, headers: ['ETag'] } },
});

export const getKeyUsageWire = defineWire({
  method: 'GET',
  path: '/keys/{id}/usage',
  operationId: 'getKeyUsage',
  tag: 'Keys',
  summary: 'The usage of a key',
  description:
    'A row for each minute, hour or day of UTC in which the key sent requests, from the row of `from` to the row of `to`. Minutes are kept for `usage.keepDays`; older usage is available only by day, for 400 days.',
  params: { id: keyIdParameter },
  query: queryOf({
    ...periodQuery,
    step: oneOf(usageSteps).default('minute').describe('The length of a row.'),
  }),
  answers: { 200: { description: 'The rows.', schema: keyUsage } },
});

export const getMonthUsageWire = defineWire({
  method: 'GET',
  path: '/usage',
  operationId: 'getMonthUsage',
  tag: 'Keys',
  summary: 'The usage of all keys in a month',
  description:
    'Data for billing: a page of the keys of the configuration and of the key directory, sorted by id. Each key has its requests in one UTC month, even if the number is 0. A removed key is listed without a plan if it has recorded requests and is among the 10,000 keys that were active last. `POST /flush` before this request includes the latest requests to all processes.',
  query: queryOf({
    month: month()
      .optional()
      .describe('A UTC month; by default the present month. The record goes back 400 days.'),
    after: text(128).optional().describe('The `next` of the previous page.'),
    limit: wholeNumber(1, pageMax).default(pageMax).describe('The largest number of keys on a page.'),
  }),
  answers: { 200: { description: 'The page.', schema: monthPage } },
});

/** The routes that read keys with their usage. */
export function createKeyRoutes(sources: KeyDetailSources): readonly Route[] {
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
        const shown = await showKey(sources, id);
        if (shown === undefined) return noSuchKey();
        if (shown === 'no_store') return storeUnavailable();
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
