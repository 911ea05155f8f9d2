import { counted } from '../../shared/words/figures.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { List, Say } from './list.js' */

/** @typedef {BodyOf<'/old-secrets'>} OldSecrets */

/** Old secrets that are still in use: whose owners have not moved to the new secret. @type {List<OldSecrets, OldSecrets['secrets'][number]>} */
export const oldSecretList = {
  columns: {
    key: { title: 'Key', value: ({ key }) => key, terminal: { cutsTo: 12 } },
    secret: { title: 'Old secret', value: ({ digestStart }) => `${digestStart}…` },
    last: { title: 'Last used', kind: 'ago', value: ({ lastAt }) => Date.parse(lastAt) },
    ends: {
      title: 'Ends',
      kind: 'minute',
      value: ({ endsAt }) => (endsAt === undefined ? undefined : Date.parse(endsAt)),
      missing: 'never',
    },
    issued: { title: 'New one issued', kind: 'minute', value: ({ newest }) => Date.parse(newest.issuedAt) },
    newest_last: {
      title: 'New one used',
      kind: 'ago',
      value: ({ newest: { lastAt } }) => (lastAt === undefined ? undefined : Date.parse(lastAt)),
      missing: 'never',
    },
    name: { title: 'Name', value: ({ name }) => name, terminal: { cutsTo: 4 } },
    plan: { title: 'Plan', value: ({ plan }) => plan },
  },
  onTerminal: ['key', 'secret', 'last', 'ends', 'newest_last', 'name'],
  onPage: ['key', 'secret', 'last', 'ends', 'newest_last'],
  inCsv: ['key', 'name', 'plan', 'secret', 'last', 'ends', 'issued', 'newest_last'],
  rows: ({ secrets }) => secrets,
  idOf: ({ key, digestStart }) => `${digestStart} ${key}`,
  head({ secrets, more = 0, at }, say) {
    if (secrets.length === 0) return [];
    const are = secrets.length === 1 && more === 0 ? 'is' : 'are';
    return [
      {
        parts: [
          `${counted(secrets.length + more, 'old secret')} ${are} still in use, although a newer one was issued${asOf(at, say)}. When an old secret ends, its clients get 401. ${endedText}`,
        ],
      },
    ];
  },
  empty: (_, { at }, say) => ({
    parts: [`Every client with a valid secret uses the newest one of its key${asOf(at, say)}. ${endedText}`],
  }),
};

const endedText = '"tollgate keys list --dead" lists secrets that have ended and are still used.';

/** The list may be some seconds old. @param {string | undefined} at @param {Say} say */
function asOf(at, { clock }) {
  return at === undefined ? '' : ` (as of ${clock(Date.parse(at))})`;
}
