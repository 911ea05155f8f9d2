import { figure, listOf, noFigure } from '../../shared/words/figures.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { KeySort, KeyState } from '../../shared/schema/query-words.ts' */
/** @import { Asked, List, Sentence, Tone } from './list.js' */

/** @typedef {BodyOf<'/keys'>} KeyPage */
/** @typedef {KeyPage['keys'][number]} Key */

/** The message of a 404 about a key. The removal of the key may follow, if the record of changes has it. */
export const noSuchKeyText = 'There is no key with this id.';

/** When and by whom a key was removed, as a sentence; empty if it is not known. @param {string} message the message of a 404 */
export function removalIn(message) {
  return message.startsWith(noSuchKeyText) ? message.slice(noSuchKeyText.length).trim() : '';
}

/** The tone of each state, the most urgent state first. @type {Readonly<Record<KeyState, Tone>>} */
const toneOfState = {
  banned: 'bad',
  limited: 'bad',
  near: 'near',
  ok: 'good',
  unused: 'off',
  expired: 'near',
  no_secret: 'near',
  disabled: 'off',
  unknown: 'off',
};

/** @type {readonly string[]} */
export const keyStates = Object.keys(toneOfState);

/** Returns the state of a key in words. In the API, the state "no secret" is `no_secret`. @param {string} state */
export function stateText(state) {
  return state.replace('_', ' ');
}

/** @param {string} state @returns {Tone | undefined} undefined for a state of a later version */
export function stateTone(state) {
  return Object.hasOwn(toneOfState, state) ? toneOfState[/** @type {KeyState} */ (state)] : undefined;
}

/**
 * Returns the used-up windows of a key. While the key is banned, only the windows that start over after the ban are
 * returned.
 *
 * @template {{ readonly remaining: number, readonly resetMs: number }} Window
 * @param {{ readonly windows: readonly Window[], readonly ban?: { readonly untilMs: number } | undefined }} of
 */
export function spentWindows({ windows, ban: { untilMs } = { untilMs: 0 } }) {
  return windows.filter(({ remaining, resetMs }) => remaining === 0 && resetMs > untilMs);
}

/**
 * The operations that a key called, and the requests whose operation is not known while Redis is away.
 *
 * @param {BodyOf<'/keys/{id}'>} key
 * @returns {readonly Calls[]}
 */
export function callsOf({ operations24h = [], offered24h = 0, missing }) {
  const rest = offered24h - operations24h.reduce((sum, { requests }) => sum + requests, 0);
  return missing && rest > 0
    ? [...operations24h, { operationId: 'not known', requests: rest }]
    : operations24h;
}

/** @typedef {{ operationId: string, requests: number, clientErrors?: number, serverErrors?: number }} Calls */

/** The orders of the list. @type {Readonly<Record<KeySort, string>>} */
export const keySorts = {
  refused: 'most refused',
  offered: 'most requests',
  lastSeen: 'last seen',
  id: 'id',
};

/** @type {List<KeyPage, Key>} */
export const keyList = {
  columns: {
    id: {
      title: 'Key',
      value: ({ id }) => id,
      terminal: { cutsTo: 14 },
      page: { hint: ({ id, name }) => (name === undefined ? id : `${id} ${name}`) },
    },
    state: {
      title: 'State',
      kind: 'state',
      value: ({ state }) => stateText(state),
      tone: ({ state }) => stateTone(state),
      page: { width: 'state-word' },
    },
    plan: { title: 'Plan', value: ({ plan }) => plan, terminal: { cutsTo: 10 }, page: { width: 'short' } },
    used: {
      title: 'Used',
      value: fullestWindow,
      terminal: { title: 'Fullest window' },
      page: { width: 'windows' },
    },
    // Without a usage record, the figures are missing, because a zero would be a wrong figure.
    requests_24h: {
      title: 'Requests, 24 h',
      kind: 'count',
      value: ({ offered24h }) => offered24h,
      missing: noFigure,
      terminal: { title: 'Requests 24h' },
    },
    refused_24h: {
      title: 'Refused, 24 h',
      kind: 'count',
      value: ({ refused24h }) => refused24h,
      tone: ({ refused24h = 0 }) => (refused24h > 0 ? 'bad' : undefined),
      missing: noFigure,
      terminal: { title: 'Refused 24h' },
    },
    last_seen: { title: 'Last seen', kind: 'ago', value: ({ lastSeenMs }) => lastSeenMs, missing: noFigure },
    newest_secret: {
      title: 'Newest secret',
      kind: 'ago',
      value: ({ newestSecretAt }) => newestSecretAt && Date.parse(newestSecretAt),
      missing: 'unknown',
    },
    name: { title: 'Name', value: ({ name }) => name, terminal: { cutsTo: 12 } },
  },
  onTerminal: ['id', 'plan', 'state', 'used', 'refused_24h', 'requests_24h', 'last_seen', 'name'],
  onPage: ['id', 'state', 'plan', 'used', 'requests_24h', 'refused_24h', 'last_seen'],
  inCsv: ['id', 'name', 'plan', 'state', 'requests_24h', 'refused_24h', 'last_seen', 'newest_secret'],
  rows: ({ keys }) => keys,
  idOf: ({ id }) => id,
  empty: noKeys,
};

/** Returns the window with the largest used share, such as `minute 60/60`. @param {Key} key */
function fullestWindow({ windows }) {
  const [fullest] = windows.toSorted((a, b) => b.used / b.limit - a.used / a.limit);
  return fullest && `${fullest.name} ${figure(fullest.used)}/${figure(fullest.limit)}`;
}

/** @param {Asked} asked @returns {Sentence} */
function noKeys({ filter: { q = '', state, plan, olderThan }, after, next }) {
  if (next !== undefined) {
    return { parts: ['No match among the keys searched so far. The next page continues the search.'] };
  }
  if (after !== undefined) return { parts: ['No more keys.'] };
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(q)) {
    const request = { text: q, href: `/requests/${q}` };
    return { parts: ['No key has this id. It looks like the id of a request: ', request, '.'] };
  }
  if (state && !q && !plan && !olderThan) {
    const all = { text: ' Show all keys.', href: '/keys', isOnPage: /** @type {const} */ (true) };
    return { parts: [`No key is ${listOf(state.split(',').map(stateText), 'or')} now.`, all] };
  }
  if (q || state || plan || olderThan) {
    const all = /** @type {const} */ ({ text: ' Show all keys.', href: '/keys', isOnPage: true });
    return { parts: ['No key matches these filters.', all] };
  }
  const create = 'npm run tollgate -- keys create --id acme --plan free --file config/keys.yaml';
  return {
    parts: [
      'There are no keys yet. Create one on the machine of the gateway: ',
      { text: create, isCode: true },
    ],
  };
}
