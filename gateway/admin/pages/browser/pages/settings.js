import { counted, hourMs } from '../../../../shared/words/figures.js';
import { settingRows } from '../../../words/settings.js';
import { nowMs, usePolled } from '../api.js';
import { clock } from '../formats.js';
import { cards, html, Instant, instead, Section } from '../parts.js';
import { changeQuery } from '../router.js';

/** @import { State } from '../../../wires/api-types.ts' */
/** @import { SettingRow, Settings as InForce } from '../../../words/settings.js' */
/** @import { PageProps } from '../live.js' */

/** The page of the effective settings. @param {PageProps} props */
export function Settings({ query, live: { state } }) {
  const filter = query.get('q') ?? '';
  const type = (/** @type {any} */ { currentTarget: { value } }) =>
    changeQuery({ q: value }, { replace: true });
  return html`<div class="settings">
    <div class="heading">
      <h1>Settings</h1>
      <div class="filters tools" role="search" aria-label="Filter the settings">
        <input type="search" value=${filter} onInput=${type} maxlength="64" placeholder="name, value or words" aria-label="Name, value or words" />
      </div>
    </div>
    ${state && loaded(state)}
    <${InForceNow} key=${state?.config.version} filter=${filter} />
  </div>`;
}

/** States when the gateway loaded the configuration, and which edits have no effect yet. @param {State} state */
function loaded({ config: { version, loadedAt, lastError, kept = [], waitsForRestart = [] } }) {
  return html`<div class="sentence">
      <p>Version <code>${version}</code>, loaded <${Instant} atMs=${Date.parse(loadedAt)} />. A setting that the configuration does not state has its default. <a href="/changes">All changes</a>.</p>
      ${waitsForRestart.length > 0 && html`<p class="near">These changes take effect at the next start: ${waitsForRestart.join(', ')}.</p>`}
      ${kept.map(({ file, since }) => html`<p key=${file} class="near">The file ${file} has been invalid since ${clock(Date.parse(since), nowMs())}. Its last valid content is in force.</p>`)}
      ${lastError !== undefined && html`<p class="near">The last edit is invalid, so it is not in force:</p>`}
    </div>
    ${lastError !== undefined && html`<pre class="error" tabindex="0">${lastError}</pre>`}`;
}

/**
 * The settings of the present version, by group. The component is made anew for each version, so it asks again only rarely.
 *
 * @param {{ filter: string }} props
 */
function InForceNow({ filter }) {
  const polled = usePolled('/settings', hourMs, { query: { keys: 'none' } });
  const document = usePolled('/openapi.json', hourMs);
  if (polled.body === undefined) return instead(polled, '');
  const words = filter.toLowerCase().split(/\s+/);
  const rows = settingRows(polled.body, document.body).filter(({ name, value = '', description = '' }) => {
    const text = `${name} ${value} ${description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  if (rows.length === 0)
    return html`<p class="empty">No setting has these words. <a href="/settings">Show all settings</a>.</p>`;
  const [stated, absent] = [true, false].map((is) =>
    rows.filter(({ value }) => (value !== undefined) === is),
  );
  const groups = Map.groupBy(stated ?? [], ({ group }) => group);
  // A group with one setting has its heading in the name of the setting.
  const single = [...groups.values()].flatMap((group) => (group.length === 1 ? group : []));
  return html`
    ${group('General', single)}
    ${[...groups].map(([name, group_]) => group_.length > 1 && group(name, group_))}
    ${group('Not set', absent ?? [])}
    ${filter === '' && elsewhere(polled.body)}
  `;
}

/** @param {string} title @param {readonly SettingRow[]} rows */
function group(title, rows) {
  if (rows.length === 0) return undefined;
  const hasValues = rows.some(({ value }) => value !== undefined);
  return html`<${Section} key=${title} title=${title}>
    ${cards(rows, {
      idOf: ({ name }) => name,
      columns: [
        { title: 'Setting', kind: 'id', cell: ({ name }) => html`<code>${name}</code>` },
        ...(hasValues
          ? [
              {
                title: 'Value',
                cell: (/** @type {SettingRow} */ { value, isDefault }) =>
                  html`<bdi>${value}</bdi>${isDefault && html`<span class="muted"> (default)</span>`}`,
              },
            ]
          : []),
        {
          title: 'Meaning',
          width: 'meaning',
          cell: ({ description }) => description && html`<span class="muted">${inWords(description)}</span>`,
        },
      ],
    })}
  <//>`;
}

/** Texts between backticks are code. @param {string} text */
function inWords(text) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}

/** Plans, keys and operations have pages of their own. @param {InForce} settings */
function elsewhere({ plans, keyCount, operations }) {
  return html`<p class="sentence">
    The configuration also has <a href="/plans">${counted(plans.length, 'plan')}</a>, <a href="/keys">${counted(keyCount, 'key')}</a> and
    ${' '}<a href="/operations">${counted(operations.length, 'operation')}</a>.
  </p>`;
}
