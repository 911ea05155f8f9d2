import { html, Instant } from '../../../../admin/pages/browser/parts.js';

/** @import { Key, KeyNotes } from '../../../interfaces/pages.ts' */

/** The links that open the page of the key's holder without a secret. @type {KeyNotes} */
export const linkNotes = {
  members: ['links'],
  notesOn: ({ links }) => links?.map(linkLine),
};

/** @param {NonNullable<Key['links']>[number]} link */
function linkLine({ digestStart, by, untilAt }) {
  return html`<p key=${digestStart} class="muted">
    A link of <bdi>${by}</bdi> opens the holder's page (<code>${digestStart}…</code>), <${Instant} atMs=${Date.parse(untilAt)} prefix="ends " />
  </p>`;
}
