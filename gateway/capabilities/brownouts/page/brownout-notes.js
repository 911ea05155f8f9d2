import { utcMinute } from '../../../admin/pages/browser/formats.js';
import { html } from '../../../admin/pages/browser/parts.js';

/** @import { Deprecation, DeprecationNotes } from '../../interfaces/pages.ts' */

/** @type {DeprecationNotes} */
export const brownoutNotes = ({ brownouts = [] }) =>
  brownouts.map((one) => html`<span class="muted">, brownout ${seriesText(one)}</span>`);

/** @param {NonNullable<Deprecation['brownouts']>[number]} series */
function seriesText({ from, every, for: length }) {
  const often = every === undefined ? '' : ` every ${every}`;
  return `for ${length}${often} from ${utcMinute(from)}`;
}
