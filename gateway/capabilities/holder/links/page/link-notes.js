import { html, Instant } from '../../../../admin/pages/browser/parts.js';
import { endOf } from './link-actions.js';

/** @import { Key, KeyNotes } from '../../../interfaces/pages.ts' */

/** The links that open the page of the key's holder without a secret. @type {KeyNotes} */
export const linkNotes = {
  members: ['links'],
  notesOn: ({ links }, button) => links?.map((link) => linkLine(link, button(endOf(link)))),
};

/** @param {NonNullable<Key['links']>[number]} link @param {unknown} end */
function linkLine({ digestStart, by, untilAt }, end) {
  return html`<p key=${digestStart} class="muted">
    A link of <bdi>${by}</bdi> opens the holder's page (<code>${digestStart}…</code>), <${Instant} atMs=${Date.parse(untilAt)} prefix="ends " /> ${end}
  </p>`;
}
