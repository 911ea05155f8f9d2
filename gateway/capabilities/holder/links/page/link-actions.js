import { change } from '../../../../admin/pages/browser/api.js';
import { html } from '../../../../admin/pages/browser/parts.js';
import { utcMinute } from '../../../../shared/words/figures.js';

/** @import { BodyOf } from '../../../../admin/wires/api-types.ts' */
/** @import { KeyAction } from '../../../interfaces/pages.ts' */

/** @typedef {BodyOf<'/keys/{id}/links', 'POST'>} MadeLink */

/** @type {KeyAction<MadeLink>} */
const link = {
  button: 'Make a link…',
  // The member is absent if no link can be made, and empty if the key has none.
  isOffered: ({ links, state }) => links !== undefined && state !== 'disabled',
  title: 'Make a link to the page of',
  says: ({ id }) =>
    `Everyone who has the link can read the limits and the usage of ${id} on its holder's page, without a secret. A link cannot get a new secret or call the API.`,
  fields: () =>
    html`<div class="field">
      <label for="link-for">How long</label>
      <select id="link-for" name="for">
        ${Object.entries(lengths).map(([length, text]) => html`<option key=${length} value=${length} selected=${length === '7d'}>${text}</option>`)}
      </select>
    </div>`,
  run: ({ id }, form) =>
    change('POST', '/keys/{id}/links', { params: { id }, body: { for: String(form.get('for')) } }),
  done: ({ id }, form) => `A link opens the page of ${id} for ${lengths[String(form.get('for'))]}.`,
  once: ({ id }, { url, link: { untilAt } }) => ({
    title: `A link to the page of ${id}`,
    says: `The link is shown only now. It ends at ${utcMinute(untilAt)}.`,
    text: url,
  }),
};

/** @type {Record<string, string>} */
const lengths = { '1h': 'an hour', '24h': '24 hours', '7d': '7 days', '30d': '30 days' };

/** @type {KeyAction} */
const unlink = {
  button: 'End the links…',
  isOffered: ({ links = [] }) => links.length > 0,
  title: 'End the links to the page of',
  says: (_, where) =>
    `The next request with one of the links gets 401, ${where}. The key itself is unchanged.`,
  run: ({ id }) => change('DELETE', '/keys/{id}/links', { params: { id } }),
  done: ({ id }) => `No link opens the page of ${id}.`,
};

export const linkActions = { link, unlink };
