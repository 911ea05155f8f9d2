import { useEffect, useRef, useState } from 'preact/hooks';
import { usePolled } from '../api.js';
import { count } from '../formats.js';
import {
  cards,
  html,
  Instant,
  instead,
  keyLink,
  paging,
  Section,
  selectInAddress,
  stateText,
  stateWord,
  useNow,
  windowBar,
} from '../parts.js';
import { changeQuery } from '../router.js';

/** @import { PageProps } from '../routes.js' */

const perPage = 50;
const states = ['banned', 'limited', 'near', 'ok', 'unused', 'expired', 'no_secret', 'disabled', 'unknown'];
const sorts = { refused: 'most refused', offered: 'most requests', lastSeen: 'last seen', id: 'id' };
const typingMs = 250;

/** @typedef {{ q: string | undefined, state: string | undefined, plan: string | undefined, sort: string | undefined }} Filter */

/**
 * The list of keys. Keys with the most refusals come first, unless the URL names another order.
 *
 * @param {PageProps} props
 */
export function Keys({ query }) {
  const now = useNow();
  const inAddress = (/** @type {string} */ name) => query.get(name) ?? undefined;
  const filter = {
    q: inAddress('q'),
    state: inAddress('state'),
    plan: inAddress('plan'),
    sort: inAddress('sort'),
  };
  const after = inAddress('after');
  const polled = usePolled('/keys', 4_000, { query: { ...filter, after, limit: perPage } });
  const plans = usePolled('/plans', 60_000).body?.plans ?? [];
  const { keys = [], next } = polled.body ?? {};
  return html`<${Section} title="Keys" heading="h1" polled=${polled} tools=${html`<${Filters} filter=${filter} plans=${plans} />`} name="keys">
    ${
      keys.length === 0
        ? instead(polled, noKeys(filter, after, next))
        : cards(keys, {
            key: query.toString(),
            isSteady: true,
            idOf: ({ id }) => id,
            columns: [
              {
                title: 'Key',
                kind: 'id',
                cell: keyLink,
                cellHint: ({ id, name }) => (name === undefined ? id : `${id} ${name}`),
              },
              {
                title: 'State',
                cell: ({ state, ban }) =>
                  html`${stateWord(state)}${ban && html` <span class="muted"><${Instant} atMs=${ban.untilMs} prefix="ends " /></span>`}`,
              },
              { title: 'Plan', width: 'short', cell: ({ plan }) => plan },
              {
                title: 'Used',
                kind: 'windows',
                width: 'windows',
                cell: ({ windows }) => windows.map((window) => windowBar(window, { now })),
              },
              { title: 'Requests, 24 h', kind: 'number', cell: ({ offered24h }) => count(offered24h) },
              {
                title: 'Refused, 24 h',
                kind: 'number',
                cell: ({ refused24h }) => count(refused24h),
                isBad: ({ refused24h = 0 }) => refused24h > 0,
              },
              {
                title: 'Last seen',
                kind: 'number',
                cell: ({ lastSeenMs }) => html`<${Instant} atMs=${lastSeenMs} />`,
              },
            ],
          })
    }
    ${paging(
      { first: 'First page', further: 'Next page', after, next },
      html`<span class="muted">${keys.length > 0 && `${count(keys.length)} on this page`}</span>`,
    )}
  <//>`;
}

/** @param {{ filter: Filter, plans: readonly { name: string, keys: number }[] }} props */
function Filters({ filter, plans }) {
  const typed = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const [text, setText] = useState(filter.q ?? '');
  // The search field shows the text in the URL, which the Back button or a link may change.
  useEffect(() => setText(filter.q ?? ''), [filter.q]);
  useEffect(() => () => clearTimeout(typed.current), []);
  const type = (/** @type {any} */ { currentTarget: { value } }) => {
    setText(value);
    clearTimeout(typed.current);
    typed.current = setTimeout(
      () => changeQuery({ q: value, after: undefined }, { replace: true }),
      typingMs,
    );
  };
  return html`<div class="filters" role="search" aria-label="Filter the keys">
    <input type="search" value=${text} onInput=${type} maxlength="64" placeholder="id or name" aria-label="Id or name" />
    ${selectInAddress('state', 'State', [['', 'any state'], ...states.map((state) => [state, stateText(state)])], filter.state)}
    ${selectInAddress('plan', 'Plan', [['', 'any plan'], ...plans.map(({ name, keys }) => [name, `${name} (${count(keys)})`])], filter.plan)}
    ${selectInAddress(
      'sort',
      'Sort',
      Object.entries(sorts).map(([name, words]) => [name === 'refused' ? '' : name, words]),
      filter.sort,
    )}
  </div>`;
}

/**
 * Returns the text to show when no key is listed.
 *
 * @param {Filter} filter
 * @param {string | undefined} after
 * @param {string | undefined} next
 */
function noKeys({ q = '', state, plan }, after, next) {
  if (next !== undefined)
    return 'No match among the keys searched so far. The next page continues the search.';
  if (after !== undefined) return 'No more keys.';
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(q)) {
    return 'No key has this id. It looks like the id of a request. The access log has a line for each request, with its key.';
  }
  if (state === 'limited' || state === 'banned') {
    return html`No key is ${state} now. <a href="/keys">All keys</a> are sorted by their refusals in the last 24 hours.`;
  }
  if (q || state || plan) return html`No key matches these filters. <a href="/keys">Show all keys</a>.`;
  return html`There are no keys yet. Create one on the machine of the gateway: <code>npm run tollgate -- keys create --id acme --plan free --file config/keys.yaml</code>`;
}
