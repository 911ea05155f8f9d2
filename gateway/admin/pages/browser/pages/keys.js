import { useEffect, useRef, useState } from 'preact/hooks';
import { queryOf, usePolled } from '../api.js';
import { count } from '../formats.js';
import {
  html,
  Instant,
  Instead,
  Paging,
  Section,
  StateWord,
  SteadyRows,
  stateText,
  useNow,
  WindowBar,
} from '../parts.js';
import { changeQuery, keyPath } from '../router.js';

const perPage = 50;
const states = ['banned', 'limited', 'near', 'ok', 'unused', 'expired', 'no_secret', 'disabled', 'unknown'];
const sorts = { refused: 'most refused', offered: 'most requests', lastSeen: 'last seen', id: 'id' };
const typingMs = 250;

/** The list of keys. Keys with the most refusals come first, unless the address names another order. */
export function Keys({ query }) {
  const filters = {
    q: query.get('q') ?? undefined,
    state: query.get('state') ?? undefined,
    plan: query.get('plan') ?? undefined,
    sort: query.get('sort') ?? undefined,
  };
  const after = query.get('after') ?? undefined;
  const path = `/keys${queryOf({ ...filters, after, limit: perPage })}`;
  const polled = usePolled(path, 4_000);
  const plans = usePolled('/plans', 60_000).body?.plans ?? [];
  const { keys = [], next } = polled.body ?? {};
  const isFiltered = Object.entries(filters).some(([name, value]) => name !== 'sort' && value !== undefined);
  const tools = html`<${Filters} filters=${filters} plans=${plans} />`;
  return html`<${Section} title="Keys" heading="h1" polled=${polled} tools=${tools} name="keys">
    ${
      keys.length === 0
        ? html`<${Instead} polled=${polled}><${NoKeys} filters=${filters} isFiltered=${isFiltered} after=${after} next=${next} /><//>`
        : html`<${KeysTable} key=${path} keys=${keys} />`
    }
    <${Paging} first="First page" further="Next page" after=${after} next=${next}>
      <span class="muted">${keys.length > 0 && `${count(keys.length)} on this page`}</span>
    <//>
  <//>`;
}

function Filters({ filters, plans }) {
  const typed = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const [text, setText] = useState(filters.q ?? '');
  // The address has changed: back, or a link.
  useEffect(() => setText(filters.q ?? ''), [filters.q]);
  useEffect(() => () => clearTimeout(typed.current), []);
  const type = (event) => {
    const { value } = event.currentTarget;
    setText(value);
    clearTimeout(typed.current);
    typed.current = setTimeout(
      () => changeQuery({ q: value, after: undefined }, { replace: true }),
      typingMs,
    );
  };
  const choose = (/** @type {string} */ name) => (event) =>
    changeQuery({ [name]: event.currentTarget.value, after: undefined });
  return html`<div class="filters" role="search" aria-label="Filter the keys">
    <input type="search" value=${text} onInput=${type} maxlength="64" placeholder="id or name" aria-label="Id or name" />
    <${Choice} label="State" value=${filters.state} onChange=${choose('state')}
      options=${[['', 'any state'], ...states.map((state) => [state, stateText(state)])]} />
    <${Choice} label="Plan" value=${filters.plan} onChange=${choose('plan')}
      options=${[['', 'any plan'], ...plans.map(({ name, keys }) => [name, `${name} (${count(keys)})`])]} />
    <${Choice} label="Sort" value=${filters.sort} onChange=${choose('sort')}
      options=${Object.entries(sorts).map(([name, words]) => [name === 'refused' ? '' : name, words])} />
  </div>`;
}

function Choice({ label, value = '', options, onChange }) {
  // A link may ask for a value that is not among the options, such as a removed plan.
  const all = options.some(([name]) => name === value) ? options : [...options, [value, value]];
  return html`<select aria-label=${label} value=${value} onChange=${onChange}>
    ${all.map(([name, words]) => html`<option key=${name} value=${name} selected=${name === value}>${words}</option>`)}
  </select>`;
}

function NoKeys({ filters: { q, state }, isFiltered, after, next }) {
  if (next !== undefined)
    return html`None of the keys that were looked at. There are more: see the next page.`;
  if (after !== undefined) return html`No further keys.`;
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(q ?? '')) {
    return html`No key is called so. It looks like a request's id: search for it in the access log, whose line names the key.`;
  }
  if (state === 'limited' || state === 'banned') {
    return html`No key is ${state} now. Try: those that were refused most in the last
      24 hours, <a href="/keys">without a filter</a>.`;
  }
  if (isFiltered) return html`No key is like this. <a href="/keys">Show all keys</a>.`;
  return html`There are no keys yet. Make one where the gateway
    is: <code>npm run tollgate -- keys create --id acme --plan free --file config/keys.yaml</code>`;
}

function KeysTable({ keys }) {
  const now = useNow();
  return html`<table class="cards">
    <thead>
      <tr>
        <th scope="col">Key</th>
        <th scope="col">State</th>
        <th scope="col" class="short">Plan</th>
        <th scope="col" class="windows">Used</th>
        <th scope="col" class="number">Requests, 24 h</th>
        <th scope="col" class="number">Refused, 24 h</th>
        <th scope="col" class="number">Last seen</th>
      </tr>
    </thead>
    <${SteadyRows} items=${keys} idOf=${({ id }) => id} row=${(key) => html`<${KeyRow} item=${key} now=${now} />`} />
  </table>`;
}

function KeyRow({ item: { id, name, plan, state, windows, ban, offered24h, refused24h, lastSeenMs }, now }) {
  return html`<tr>
    <td class="id" title=${name === undefined ? id : `${id} ${name}`}>
      <a href=${keyPath(id)}>${id}</a>${name !== undefined && html`<bdi class="muted"> ${name}</bdi>`}
    </td>
    <td data-label="State">
      <${StateWord} state=${state} />${ban && html` <span class="muted"><${Instant} atMs=${ban.untilMs} prefix="ends " /></span>`}
    </td>
    <td data-label="Plan">${plan}</td>
    <td class="windows">
      ${windows.map((window) => html`<${WindowBar} key=${window.name} ...${window} now=${now} />`)}
    </td>
    <td class="number" data-label="Requests, 24 h">${count(offered24h)}</td>
    <td class=${`number ${refused24h > 0 ? 'bad' : ''}`} data-label="Refused, 24 h">${count(refused24h)}</td>
    <td class="number" data-label="Last seen"><${Instant} atMs=${lastSeenMs} /></td>
  </tr>`;
}
