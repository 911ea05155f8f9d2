import { noFigure } from '../../shared/words/figures.js';
import { refusedInWords } from './usage.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { Table } from './list.js' */

/** @typedef {BodyOf<'/plans/{name}/trial'>} Trial */
/** @typedef {Trial['keys'][number]} RefusedKey */

/** The keys with requests that a trial would have refused. @type {Table<RefusedKey>} */
export const trialKeys = {
  columns: {
    id: { title: 'Key', value: ({ id }) => id, terminal: { cutsTo: 12 } },
    requests: { title: 'Requests', kind: 'count', value: ({ requests }) => requests },
    refused_now: { title: 'Refused now', kind: 'count', value: ({ refusedNow }) => refusedNow },
    refused: {
      title: 'By the trial',
      kind: 'count',
      value: ({ refused }) => refused,
      tone: ({ refused, refusedNow }) => (refused > refusedNow ? 'bad' : 'good'),
    },
    share: { title: 'Share', kind: 'percent', value: ({ refused, requests }) => refused / requests },
    refused_by: { title: 'Refused by', value: refusers, terminal: { cutsTo: 10 } },
    first: {
      title: 'First',
      kind: 'minute',
      value: ({ firstRefusedAt }) => timeOf(firstRefusedAt),
      missing: noFigure,
    },
    last: {
      title: 'Last',
      kind: 'minute',
      value: ({ lastRefusedAt }) => timeOf(lastRefusedAt),
      missing: noFigure,
    },
    name: { title: 'Name', value: ({ name }) => name, terminal: { cutsTo: 12 } },
  },
  onTerminal: ['id', 'requests', 'refused_now', 'refused', 'share', 'first', 'last', 'refused_by', 'name'],
  onPage: ['id', 'requests', 'refused_now', 'refused', 'share', 'refused_by', 'first', 'last'],
};

/** @param {RefusedKey} key */
function refusers({ refusedBy: { banned = 0, ...refused } }) {
  return refusedInWords({ refused, banned });
}

/** @param {string | undefined} at */
function timeOf(at) {
  return at === undefined ? undefined : Date.parse(at);
}
