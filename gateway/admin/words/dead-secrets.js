import { counted } from '../../shared/words/figures.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { List } from './list.js' */

/** @typedef {BodyOf<'/dead-secrets'>} DeadSecrets */
/** @typedef {NonNullable<DeadSecrets['unknown']> & Partial<DeadSecrets['secrets'][number]> & { readonly text?: string }} Row */

/** The secrets that are not valid but in use. The last rows count further secrets, and secrets that belong to no key. @type {List<DeadSecrets, Row>} */
export const deadSecretList = {
  columns: {
    key: { title: 'Key', value: ({ key, text }) => key ?? text, terminal: { cutsTo: 12 } },
    secret: { title: 'Secret', value: ({ digestStart }) => digestStart && `${digestStart}…` },
    state: {
      title: 'Now',
      kind: 'state',
      value: ({ state }) => state?.replace('_', ' '),
      tone: ({ state }) => (state === 'leaked' ? 'bad' : 'near'),
    },
    requests: { title: 'Requests', kind: 'count', value: ({ requests }) => requests },
    addresses: { title: 'Addresses', kind: 'count', value: ({ addresses }) => addresses },
    first: { title: 'First hour', kind: 'minute', value: ({ firstHourAt }) => Date.parse(firstHourAt) },
    last: { title: 'Last', kind: 'ago', value: ({ lastAt }) => Date.parse(lastAt) },
    name: { title: 'Name', value: ({ name }) => name, terminal: { cutsTo: 12 } },
    plan: { title: 'Plan', value: ({ plan }) => plan },
  },
  onTerminal: ['key', 'secret', 'state', 'requests', 'addresses', 'first', 'last', 'name'],
  onPage: ['key', 'secret', 'state', 'requests', 'addresses', 'first', 'last'],
  inCsv: ['key', 'name', 'plan', 'secret', 'state', 'requests', 'addresses', 'first', 'last'],
  rows: ({ secrets, others, unknown, unread }) => [
    ...secrets,
    ...(others ? [{ ...others, text: 'further secrets' }] : []),
    ...(unknown ? [{ ...unknown, text: 'unknown secrets' }] : []),
    ...(unread ? [{ ...unread, text: 'not looked up' }] : []),
  ],
  idOf: ({ digestStart, key, text = '' }) => (key === undefined ? text : `${digestStart} ${key}`),
  head({ secrets, unread }) {
    const are = secrets.length === 1 ? 'is' : 'are';
    return [
      secrets.length > 0 &&
        `${counted(secrets.length, 'secret')} of keys ${are} refused but still in use. Find out who uses them. A customer whose secret ended by mistake needs a new one.`,
      unread &&
        `${counted(unread.requests, 'request')} got 503, because Redis did not reply when their secrets were looked up. These secrets may be valid.`,
    ].flatMap((text) => (text ? [{ parts: [text] }] : []));
  },
  empty: () => ({ parts: ['No secret that is not valid was used in the last 24 hours.'] }),
};
