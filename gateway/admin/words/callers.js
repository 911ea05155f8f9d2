import { countedRefusals } from '../../capabilities/lists/words.js';
import { counted, relative } from '../../shared/words/figures.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { CountedRefusal } from '../../capabilities/interfaces/words.ts' */
/** @import { Column, List, Say } from './list.js' */

/** @typedef {BodyOf<'/operations/{operationId}/callers'>} CallersPage */
/** @typedef {CallersPage['callers'][number]} Caller */

/** @typedef {{ readonly requests: number, readonly lastAt: string, readonly stillCalls: boolean }} Refusals */

/** @type {readonly CountedRefusal[]} */
const refusals = countedRefusals;
export const refusalMembers = refusals.map(({ member }) => member);

/** @type {List<CallersPage, Caller & { readonly share: number }>} */
export const callerList = {
  columns: {
    id: { title: 'Key', value: ({ id }) => id, terminal: { cutsTo: 12 } },
    plan: { title: 'Plan', value: ({ plan }) => plan, missing: 'removed', terminal: { cutsTo: 10 } },
    requests: { title: 'Calls', kind: 'count', value: ({ requests }) => requests },
    share: { title: 'Share', kind: 'percent', value: ({ share }) => share },
    client_errors: { title: '4xx', kind: 'count', value: ({ clientErrors }) => clientErrors },
    server_errors: {
      title: '5xx',
      kind: 'count',
      value: ({ serverErrors }) => serverErrors,
      tone: ({ serverErrors }) => (serverErrors > 0 ? 'bad' : undefined),
    },
    ...refusalColumns((/** @type {Caller & { readonly share: number }} */ caller) => caller),
    last_call: { title: 'Last call', kind: 'ago', value: ({ lastSeenMs }) => lastSeenMs },
    name: { title: 'Name', value: ({ name }) => name, terminal: { cutsTo: 12 } },
  },
  onTerminal: [
    'id',
    'plan',
    'requests',
    'share',
    'client_errors',
    'server_errors',
    'last_call',
    ...refusalMembers,
    'name',
  ],
  onPage: [
    'id',
    'plan',
    'requests',
    'share',
    'client_errors',
    'server_errors',
    ...refusalMembers,
    'last_call',
  ],
  inCsv: ['id', 'name', 'plan', 'requests', 'last_call'],
  rows({ callers }) {
    const all = callers.reduce((sum, { requests }) => sum + requests, 0);
    return callers.map((caller) => ({ ...caller, share: caller.requests / all }));
  },
  idOf: ({ id }) => id,
  empty: () => ({ parts: ['No key called this operation in this period.'] }),
};

/**
 * A column for each kind of refusals that capabilities count, by its member.
 *
 * @template Row
 * @param {(row: Row) => Caller | undefined} callerOf
 * @returns {Record<string, Column<Row>>}
 */
export function refusalColumns(callerOf) {
  return Object.fromEntries(
    refusals.map(({ member, title }) => {
      const refusedOf = (/** @type {Row} */ row) => refusalsOf(callerOf(row), member);
      /** @type {Column<Row>} */
      const column = {
        title,
        isOptional: true,
        value(row, say) {
          const refused = refusedOf(row);
          return refused && refusalText(refused, say);
        },
        tone: (row) => (refusedOf(row)?.stillCalls ? 'bad' : undefined),
      };
      return [member, column];
    }),
  );
}

/** @param {Caller | undefined} caller @param {string} member @returns {Refusals | undefined} */
export function refusalsOf(caller, member) {
  return Object(caller)[member];
}

/**
 * @param {Refusals} refusals
 * @param {Say} say
 */
function refusalText({ requests, lastAt, stillCalls }, { nowMs }) {
  const still = stillCalls ? ', still calls' : '';
  return `${counted(requests, 'request')} refused, last ${relative(Date.parse(lastAt), nowMs)}${still}`;
}
