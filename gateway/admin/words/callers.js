import { counted, relative } from '../../shared/words/figures.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { List } from './list.js' */

/** @typedef {BodyOf<'/operations/{operationId}/callers'>} CallersPage */
/** @typedef {CallersPage['callers'][number]} Caller */

/** @type {List<CallersPage, Caller & { readonly share: number }>} */
export const callerList = {
  columns: {
    id: { title: 'Key', value: ({ id }) => id, terminal: { cutsTo: 12 } },
    plan: { title: 'Plan', value: ({ plan }) => plan, missing: 'removed', terminal: { cutsTo: 6 } },
    requests: { title: 'Calls', kind: 'count', value: ({ requests }) => requests },
    share: { title: 'Share', kind: 'percent', value: ({ share }) => share },
    client_errors: { title: '4xx', kind: 'count', value: ({ clientErrors }) => clientErrors },
    server_errors: {
      title: '5xx',
      kind: 'count',
      value: ({ serverErrors }) => serverErrors,
      tone: ({ serverErrors }) => (serverErrors > 0 ? 'bad' : undefined),
    },
    brownouts: {
      title: 'Brownouts',
      isOptional: true,
      value: brownoutText,
      tone: ({ brownouts }) => (brownouts?.stillCalls ? 'bad' : undefined),
    },
    last_call: { title: 'Last call', kind: 'ago', value: ({ lastSeenMs }) => lastSeenMs },
    name: { title: 'Name', value: ({ name }) => name, terminal: { cutsTo: 4 } },
  },
  onTerminal: [
    'id',
    'plan',
    'requests',
    'share',
    'client_errors',
    'server_errors',
    'last_call',
    'brownouts',
    'name',
  ],
  onPage: ['id', 'plan', 'requests', 'share', 'client_errors', 'server_errors', 'brownouts', 'last_call'],
  inCsv: ['id', 'name', 'plan', 'requests', 'last_call'],
  rows({ callers }) {
    const all = callers.reduce((sum, { requests }) => sum + requests, 0);
    return callers.map((caller) => ({ ...caller, share: caller.requests / all }));
  },
  idOf: ({ id }) => id,
  empty: () => ({ parts: ['No key called this operation in this period.'] }),
};

/**
 * States how many requests of the key brownouts refused, and whether the key called the operation after the last
 * refusal.
 *
 * @param {Caller} caller
 * @param {import('./list.js').Say} say
 */
function brownoutText({ brownouts }, { nowMs }) {
  if (brownouts === undefined) return undefined;
  const { requests, lastAt, stillCalls } = brownouts;
  const still = stillCalls ? ', still calls' : '';
  return `${counted(requests, 'request')} refused, last ${relative(Date.parse(lastAt), nowMs)}${still}`;
}
