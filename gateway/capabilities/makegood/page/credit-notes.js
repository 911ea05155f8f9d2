import { html, Instant } from '../../../admin/pages/browser/parts.js';
import { counted, utcMinute } from '../../../shared/words/figures.js';

/** @import { Key, KeyNotes } from '../../interfaces/pages.ts' */

/** The units that an operator has given back. @type {KeyNotes} */
export const creditNotes = {
  members: ['credits'],
  notesOn: ({ credits }) => credits?.map(creditLine),
};

/** @param {NonNullable<Key['credits']>[number]} credit */
function creditLine({ at, from, to, givenBack: { day, month } }) {
  const units = `${counted(day, 'unit')} of the day and ${counted(month, 'unit')} of the month`;
  return html`<p key=${at} class="muted credit">
    <${Instant} atMs=${Date.parse(at)} prefix="given back " />: ${units}, for requests that failed from ${utcMinute(from)} to ${utcMinute(to)}
  </p>`;
}
