import { figure } from '../../../../../shared/words/figures.js';
import { keyList, keySorts, keyStates, stateText } from '../../../../words/keys.js';
import { usePolled } from '../../api.js';
import { keyStateWord, listTable } from '../../list.js';
import {
  html,
  Instant,
  instead,
  keyLink,
  paging,
  SearchInAddress,
  Section,
  selectInAddress,
  useNow,
  windowBar,
} from '../../parts.js';
import { useSelection } from '../../select-keys.js';
import { DeadSecrets } from './dead-secrets.js';
import { OldSecrets } from './old-secrets.js';

/** @import { PageProps } from '../../live.js' */

const perPage = 50;

/** @typedef {{ q: string | undefined, state: string | undefined, plan: string | undefined, sort: string | undefined }} Filter */

/**
 * The list of keys. Keys with the most refusals come first, unless the URL names another order.
 *
 * @param {PageProps} props
 */
export function Keys({ query, live }) {
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
  const { q, state, plan } = filter;
  const selection = useSelection({ keys, filter: JSON.stringify([q, state, plan]), live });
  // The response of `/state` contains the rights of the token. Check boxes that appear later would move the table.
  const isPending = !live.state && !live.polled.error;
  return html`<${Section} title="Keys" heading="h1" polled=${polled} tools=${html`<${Filters} filter=${filter} plans=${plans} />`} name="keys">
    ${selection.bar}
    ${
      isPending
        ? instead(live.polled, '')
        : listTable(keyList, polled, {
            asked: { filter, after, next },
            now,
            key: query.toString(),
            first: selection.columns,
            cells: {
              id: { kind: 'id', cell: keyLink },
              state: {
                cell: ({ state, ban }) =>
                  html`${keyStateWord(state)}${ban && html` <span class="muted"><${Instant} atMs=${ban.untilMs} prefix="ends " /></span>`}`,
              },
              used: {
                kind: 'windows',
                cell: ({ windows }) => windows.map((window) => windowBar(window)),
              },
            },
          })
    }
    ${paging(
      { first: 'First page', further: 'Next page', after, next },
      html`<span class="muted">${keys.length > 0 && `${figure(keys.length)} on this page`}</span>`,
    )}
  <//>
  <${DeadSecrets} />
  <${OldSecrets} />`;
}

/** @param {{ filter: Filter, plans: readonly { name: string, keys: number }[] }} props */
function Filters({ filter, plans }) {
  return html`<div class="filters" role="search" aria-label="Filter the keys">
    <${SearchInAddress} name="q" chosen=${filter.q} hint="id or name" charsMax=${64} />
    ${selectInAddress('state', 'State', [['', 'any state'], ...keyStates.map((state) => [state, stateText(state)])], filter.state)}
    ${selectInAddress('plan', 'Plan', [['', 'any plan'], ...plans.map(({ name, keys }) => [name, `${name} (${figure(keys)})`])], filter.plan)}
    ${selectInAddress(
      'sort',
      'Sort',
      Object.entries(keySorts).map(([name, words]) => [name === 'refused' ? '' : name, words]),
      filter.sort,
    )}
  </div>`;
}
