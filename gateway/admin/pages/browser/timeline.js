import { incompleteText } from '../../words/list.js';
import { nowMs } from './api.js';
import { classOf, sayAt } from './list.js';
import { html, instead, paging, Section, textWithKey, timedRow } from './parts.js';

/** @import { ComponentChildren } from 'preact' */
/** @import { Entry, Member, Timeline } from '../../words/list.js' */
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
    ${body?.isComplete === false && html`<p class="near">${incompleteText}</p>`}
    ${rows.length === 0 ? instead(polled, empty) : html`<ul class=${`rows changes ${name}`}>${rows}</ul>`}
    ${paging({ first: 'Newest', further: 'Older', after, next: body?.next })}
  <//>`;
}

/** @param {Entry} entry */
function entryRow(entry) {
  const { text, tone, key, by, members = [], error } = entry;
  const details = [...(by === undefined ? [] : [by]), ...entry.details];
  const more =
    error !== undefined && html`<pre class="error" tabindex="0" aria-label="Why it failed">${error}</pre>`;
  return timedRow(
    entry,
    html`<span class=${classOf(tone)}>${textWithKey(text, key)}</span>
      <span class="muted members">${details.join(' · ')}${members.map((member, index) => memberPart(member, index === 0 && details.length === 0))}</span>`,
    { more },
  );
}

/**
 * Shows a changed member. Each value is in its own `<bdi>`, because a right-to-left name would otherwise swap the old and
 * the new value.
 *
 * @param {Member} member @param {boolean} isFirst
 */
function memberPart({ name, from, to }, isFirst) {
  const start = `${isFirst ? '' : ' · '}${name}`;
  if (from === undefined) return html`${start} <bdi>${to}</bdi>`;
  return to === undefined
    ? html`${start} was <bdi>${from}</bdi>`
    : html`${start} <bdi>${from}</bdi> → <bdi>${to}</bdi>`;
}
