import { change } from '../../../../admin/pages/browser/api.js';
import { html } from '../../../../admin/pages/browser/parts.js';
import { utcMinute } from '../../../../shared/words/figures.js';

/** @import { BodyOf } from '../../../../admin/wires/api-types.ts' */
/** @import { Action } from '../../../../admin/pages/browser/actions.js' */

/** @typedef {BodyOf<'/keys/{id}/links', 'POST'>} MadeLink */

/** @type {Action} */
const link = {
  button: 'Make a link…',
  // The member is absent if no link can be made, and empty if the key has none.
  isOffered: ({ links, state }) => links !== undefined && state !== 'disabled',
  title: 'Make a link to the page of',
  says: ({ who }) =>
    `Everyone who has the link can read the limits and the usage of ${who} on its holder's page, without a secret. A link cannot get a new secret or call the API.`,
  fields: () =>
    html`<div class="field">
      <label for="link-for">How long</label>
      <select id="link-for" name="for">
        ${Object.entries(lengths).map(([length, text]) => html`<option key=${length} value=${length} selected=${length === '7d'}>${text}</option>`)}
      </select>
    </div>`,
  prepare(form) {
    const length = String(form.get('for'));
    /** @type {MadeLink | undefined} */
    let made;
    return {
      async run(id) {
        made = await change('POST', '/keys/{id}/links', { params: { id }, body: { for: length } });
        return { id };
      },
      done: (id) => `A link opens the page of ${id} for ${lengths[length]}.`,
      once: (id) => ({
        title: `A link to the page of ${id}`,
        says: made && `The link is shown only now. It ends at ${utcMinute(made.link.untilAt)}.`,
        text: made?.url ?? '',
      }),
    };
  },
  words: { verb: 'make links to the pages of', done: 'have a link', unchanged: 'unchanged' },
};

/** @type {Record<string, string>} */
const lengths = { '1h': 'an hour', '24h': '24 hours', '7d': '7 days', '30d': '30 days' };

/** @type {Action} */
const unlink = {
  button: 'End the links…',
  isOffered: ({ links = [] }) => links.length > 0,
  title: 'End the links to the page of',
  says: (_, where) =>
    `The next request with one of the links gets 401, ${where}. The key itself is unchanged.`,
  prepare: () => ({
    async run(id) {
      await change('DELETE', '/keys/{id}/links', { params: { id } });
      return { id };
    },
    done: (id) => `No link opens the page of ${id}.`,
  }),
  words: { verb: 'end the links of', done: 'have no link', unchanged: 'had no link' },
};

/**
 * Ends one of several links.
 *
 * @param {{ readonly digestStart: string }} link
 * @returns {Action}
 */
export function endOf({ digestStart }) {
  return {
    button: 'End…',
    isOffered: () => true,
    title: `End the link ${digestStart}… to the page of`,
    says: (_, where) =>
      `The next request with this link gets 401, ${where}. Other links and the key itself are unchanged.`,
    prepare: () => ({
      async run(id) {
        await change('DELETE', '/keys/{id}/links/{digest}', { params: { id, digest: digestStart } });
        return { id };
      },
      done: (id) => `The link ${digestStart}… no longer opens the page of ${id}.`,
    }),
    words: unlink.words,
  };
}

export const linkActions = { link, unlink };
