import { queryOf, usePolled } from '../api.js';
import { counted, shortVersion } from '../formats.js';
import { html, Instant, Instead, Section } from '../parts.js';
import { changeQuery } from '../router.js';

const perPage = 50;

/** What was changed, by whom, and what failed to be: the newest first. */
export function Changes({ query }) {
  const after = query.get('after') ?? undefined;
  const polled = usePolled(`/changes${queryOf({ limit: perPage, after })}`, 5_000);
  const { changes = [], next, isComplete = true } = polled.body ?? {};
  return html`<${Section} title="Changes" heading="h1" polled=${polled}>
    ${!isComplete && html`<p class="near">Redis is away: only what the process that answers has seen itself.</p>`}
    ${
      changes.length === 0
        ? html`<${Instead} polled=${polled}>Nothing has been changed yet. Save an edit of the configuration: it stands here two seconds later.<//>`
        : html`<ul class="rows changes">
            ${changes.map((change) => html`<${ChangeRow} key=${change.id} ...${change} />`)}
          </ul>`
    }
    <p class="paging">
      <button type="button" disabled=${after === undefined} onClick=${() => changeQuery({ after: undefined })}>Newest</button>
      <button type="button" disabled=${next === undefined} onClick=${() => changeQuery({ after: next })}>Older</button>
    </p>
  <//>`;
}

function ChangeRow({ at, action, by, before, after, error, processes }) {
  const who = by === 'file' ? 'an edit of the files' : by;
  const where = counted(processes, 'process', 'processes');
  return html`<li>
    <span class="when"><${Instant} atMs=${Date.parse(at)} /></span>
    <span class="what">
      ${
        action === 'reload_failed'
          ? html`<span class="bad">Not loaded</span>: ${shortVersion(before)} stayed in force on ${where} (${who})`
          : html`Configuration <b>${shortVersion(after)}</b> in force on ${where}, ${shortVersion(before)} before (${who})`
      }
    </span>
    ${error !== undefined && html`<pre class="error" tabindex="0" aria-label="Why it failed">${error}</pre>`}
  </li>`;
}
