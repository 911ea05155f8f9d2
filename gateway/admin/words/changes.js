import { beginning, counted, ending, figure, shortVersion } from '../../shared/words/figures.js';
import { limitsInWords } from '../../shared/words/limit-names.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { Entry, Say, Sentence, Timeline } from './list.js' */

/** @typedef {BodyOf<'/changes'>} ChangesPage */
/** @typedef {ChangesPage['changes'][number]} Change */

/** @type {Timeline<ChangesPage, Change>} */
export const changeList = {
  titles: ['By', 'Change'],
  items: ({ changes }) => changes,
  entry,
  empty: 'No changes yet. An edit of the configuration is listed here two seconds after you save it.',
  inCsv: {
    at: ({ at }) => at,
    action: ({ action }) => action,
    by: ({ by }) => by,
    files: ({ files }) => files?.join(' '),
    key: ({ key }) => key,
    text: ({ text }) => text,
    before: ({ before, appliedLimits }) => asText(before, appliedLimits?.before),
    after: ({ after, appliedLimits }) => asText(after, appliedLimits?.after),
    error: ({ error }) => error,
    ran_by: ({ ranBy }) => ranBy,
    owners: ({ editedFiles }) => editedFiles?.map(({ owner = '' }) => owner).join(' '),
    modified_at: ({ editedFiles }) => editedFiles?.map(({ modifiedAt = '' }) => modifiedAt).join(' '),
  },
};

/**
 * The changes for a file of comma-separated values. If they are the changes of one key, each row names this key, also the row of an edit
 * of files.
 *
 * @param {ChangesPage} page @param {string | undefined} key the key of the filter
 * @returns {ChangesPage}
 */
export function withKey({ changes, ...page }, key) {
  return { ...page, changes: key === undefined ? changes : changes.map((change) => ({ ...change, key })) };
}

/**
 * The version of a configuration, or members as JSON, with the limits that applied.
 *
 * @param {Change['before']} value @param {Readonly<Record<string, unknown>>} [limits]
 */
function asText(value, limits) {
  return typeof value === 'object' ? JSON.stringify(limits ? { ...value, limits } : value) : value;
}

/** @param {Change} change @param {Say} say @returns {Entry} */
function entry(change, say) {
  const {
    id,
    at,
    action,
    by,
    ranBy,
    files,
    editedFiles = [],
    key,
    text,
    before,
    after,
    inForce,
    error,
  } = change;
  const label = files?.join(', ') ?? (by === 'file' ? 'an edit of the files' : by);
  const isOfKey = typeof before !== 'string' && !/^(?:reload|plan\.)/.test(action);
  return {
    ...{ id, at, label, text, error },
    ...(action === 'reload_failed' ? { tone: 'bad' } : {}),
    ...(key === undefined ? {} : { key }),
    // The sentence about a key names the author, and the sentences about reloads and plans state what changed. The details name the files, if there are several.
    ...(isOfKey || editedFiles.length > 1 ? {} : { by: label }),
    details: [
      ...(ranBy === undefined ? [] : [{ parts: [`run by ${ranBy}`] }]),
      ...fileTexts(editedFiles, say).map((text) => ({ parts: [text] })),
      ...(isOfKey ? membersOf(Object(before), Object(after), say) : []),
      ...(inForce ? [{ parts: [inForceText(inForce)] }] : []),
      ...(action === 'reload'
        ? [{ parts: [`configuration ${versionText(before)} → ${versionText(after)}`] }]
        : []),
    ],
  };
}

/**
 * The owner and the time of each edited file. The owner is not always the author of the edit, so the texts do not name an author.
 *
 * @param {NonNullable<Change['editedFiles']>} files @param {Say} say
 */
function fileTexts(files, say) {
  return files.flatMap(({ name, owner, modifiedAt }) => {
    if (owner === undefined || modifiedAt === undefined) return [];
    const seen = `owner ${owner}, changed ${say.clock(Date.parse(modifiedAt))}`;
    return [files.length === 1 ? seen : `${name}: ${seen}`];
  });
}

/** @param {Change['before']} version */
function versionText(version) {
  return shortVersion(typeof version === 'string' ? version : undefined);
}

/** @param {NonNullable<Change['inForce']>} inForce */
function inForceText({ processes, of }) {
  return `in force on ${figure(processes)} of ${counted(of, 'process', 'processes')}`;
}

/**
 * Describes changed members, for example "plan free → pro", "name was Acme".
 *
 * @param {Readonly<Record<string, unknown>>} before @param {Readonly<Record<string, unknown>>} after @param {Say} say
 * @returns {readonly Sentence[]}
 */
function membersOf(before, after, say) {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].map((member) => {
    const name = wordOf[member] ?? member;
    const [from, to] = [before[member], after[member]].map((value) =>
      value === undefined
        ? undefined
        : {
            text: inWords(value, { ...say, clock: periodTextOf.get(member) ?? say.clock }),
            isIsolated: /** @type {const} */ (true),
          },
    );
    if (from === undefined) return { parts: to === undefined ? [name] : [`${name} `, to] };
    return { parts: to === undefined ? [`${name} was `, from] : [`${name} `, from, ' → ', to] };
  });
}

/** The words for some names of members. @type {Readonly<Record<string, string | undefined>>} */
const wordOf = {
  fromAt: 'from',
  untilAt: 'until',
  expiresAt: 'ends',
  bannedUntilAt: 'banned until',
  digestStart: 'secret',
  othersEndAt: 'others end',
};

/** The beginning and end of a grant or a ban, as the sentence of the change states them. */
const periodTextOf = new Map([
  ['fromAt', beginning],
  ['untilAt', ending],
]);

/** @param {unknown} value @param {Say} say @returns {string} */
function inWords(value, say) {
  if (typeof value === 'number') return figure(value);
  if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(String(value))) return say.clock(Date.parse(String(value)));
  if (Array.isArray(value)) return value.map((one) => inWords(one, say)).join(', ');
  if (typeof value !== 'object' || value === null) return String(value);
  const all = Object.entries(value);
  if (all.every(([name]) => name.startsWith('per') || name === 'groups')) {
    return limitsInWords(Object.fromEntries(all));
  }
  return all.map(([name, member]) => `${name} ${inWords(member, say)}`).join(', ');
}
