import { nowMs } from './api.js';
import { classOf, sayAt, sentence } from './list.js';
import { html, instead, paging, Section, textWithKey, timedRow } from './parts.js';

/** @import { ComponentChildren } from 'preact' */
/** @import { Entry, Timeline } from '../../words/list.js' */
/** @import { Polled } from './api.js' */

/**
 * A page with a list that is sorted by time, the newest entry first.
 *
 * @template {{ readonly isComplete: boolean, readonly next?: string | undefined }} Page
 * @template Item
 * @param {Timeline<Page, Item>} timeline
 * @param {Polled<Page>} polled
 * @param {{ title: string, after: string | undefined, tools?: ComponentChildren, name?: string }} options
 */
export function timelinePage({ items, entry, empty }, polled, { title, after, tools, name = '' }) {
  const { body } = polled;
  const say = sayAt(nowMs());
  const rows = body === undefined ? [] : items(body).map((item) => entryRow(entry(item, say)));
  return html`<${Section} title=${title} heading="h1" polled=${polled} tools=${tools}>
    ${rows.length === 0 ? instead(polled, empty) : html`<ul class=${`rows changes ${name}`}>${rows}</ul>`}
    ${paging({ first: 'Newest', further: 'Older', after, next: body?.next })}
  <//>`;
}

/** @param {Entry} entry */
function entryRow(entry) {
  const { text, tone, key, by, details, error } = entry;
  const more =
    error !== undefined && html`<pre class="error" tabindex="0" aria-label="Why it failed">${error}</pre>`;
  const all = [...(by === undefined ? [] : [by]), ...details.map(sentence)];
  return timedRow(
    entry,
    html`<span class=${classOf(tone)}>${textWithKey(text, key)}</span>
      <span class="muted members">${all.map((detail, index) => html`${index === 0 ? '' : ' · '}${detail}`)}</span>`,
    { more },
  );
}
