import { counted, figure } from '../../shared/words/figures.js';

// A browser imports this file, too.

/**
 * A change of many keys in words: "grant other limits to" for the question, "have the grant" and "had this grant already"
 * for the result.
 *
 * @typedef {{ readonly verb: string, readonly done: string, readonly unchanged: string }} ManyWords
 */

/**
 * The ids of the keys after a change. A failed key did not stop the others.
 *
 * @typedef {object} Outcome
 * @property {string[]} changed
 * @property {string[]} unchanged the key was as requested already
 * @property {{ readonly id: string, readonly why: string }[]} failed
 */

export const manyWords = {
  grant: {
    verb: 'grant other limits to',
    done: 'have the grant',
    unchanged: 'had this grant already',
  },
  ungrant: { verb: 'end the grants of', done: 'had their grants ended', unchanged: 'had no grant' },
  ban: { verb: 'ban', done: 'banned', unchanged: 'banned so already' },
  unban: { verb: 'lift the bans of', done: 'had their bans lifted', unchanged: 'not banned' },
  rotate: { verb: 'rotate', done: 'rotated', unchanged: 'had their new secret already' },
  revoke: { verb: 'revoke', done: 'revoked', unchanged: 'revoked already' },
  restore: { verb: 'restore', done: 'restored', unchanged: 'not revoked' },
  edit: { verb: 'edit', done: 'edited', unchanged: 'as wanted already' },
};

export const notTriedText = 'It was not tried, because the gateway did not answer for the keys before it.';

const namedMax = 10;

/** Names the first ten ids: "a, b, … and 12 more". @param {readonly string[]} ids */
export function someIds(ids) {
  const more = ids.length > namedMax ? ` and ${figure(ids.length - namedMax)} more` : '';
  return `${ids.slice(0, namedMax).join(', ')}${more}`;
}

/**
 * Returns the lines of the result. A reason that many keys share is named once.
 *
 * @param {Outcome} outcome
 * @param {ManyWords} words
 * @param {string} again how to repeat the change for the keys that failed
 * @param {string} [terms] what applies to each changed key, such as "90 a minute until 2026-11-29 24:00 UTC"
 */
export function summaryOf({ changed, unchanged, failed }, { done, unchanged: already }, again, terms) {
  const lines = [`${counted(changed.length, 'key')} ${done}${changed.length > 0 ? withTerms(terms) : ''}.`];
  if (unchanged.length > 0) lines.push(`${counted(unchanged.length, 'key')} ${already}.`);
  if (failed.length === 0) return lines;
  return [...lines, `${counted(failed.length, 'key')} failed:`, ...reasonsOf(failed), again];
}

/**
 * Returns the lines of a change that was only checked: the ids that it would change, and what it would do.
 *
 * @param {Outcome} outcome @param {ManyWords} words @param {string} [terms] as for `summaryOf`
 */
export function forecastOf({ changed, unchanged, failed }, { verb, unchanged: already }, terms) {
  const lines = [
    ...changed,
    `Without --dry-run, this command would ${verb} ${counted(changed.length, 'key')}${changed.length > 0 ? withTerms(terms) : ''}.`,
  ];
  if (unchanged.length > 0)
    lines.push(
      `It would not change ${counted(unchanged.length, 'key')} (${already}): ${someIds(unchanged)}.`,
    );
  if (failed.length === 0) return lines;
  return [...lines, `It would fail for ${counted(failed.length, 'key')}:`, ...reasonsOf(failed)];
}

/** @param {string | undefined} terms */
export function withTerms(terms) {
  return terms === undefined ? '' : `: ${terms}`;
}

/** @param {Outcome['failed']} failed */
function reasonsOf(failed) {
  const reasons = Map.groupBy(failed, ({ id, why }) => why.replaceAll(id, '…'));
  return [...reasons].map(([reason, all]) => {
    const [one] = all;
    return `  ${someIds(all.map(({ id }) => id))}: ${all.length === 1 ? one?.why : reason}`;
  });
}
