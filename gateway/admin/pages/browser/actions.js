import { counted, dayMs, figure, hourMs } from '../../../shared/words/figures.js';
import { groupIn, limitsInWords, per, windowIn, windowText } from '../../../shared/words/limit-names.js';
import { manyWords, someIds } from '../../words/many-keys.js';
import { askWithVersion, change, nowMs, usePolled } from './api.js';
import { fullInstant } from './formats.js';
import { html } from './parts.js';

/** @import { ComponentChildren } from 'preact' */
/** @import { BodyOf, Changed } from '../../wires/api-types.ts' */
/** @import { Key } from '../../words/keys.js' */
/** @import { ManyWords } from '../../words/many-keys.js' */

/** @typedef {BodyOf<'/keys/{id}'>} KeyDetail */

/**
 * What a dialog shows after an action, because no later response has it. `text` is the secret or link, which the operator copies with a button.
 *
 * @typedef {{ readonly title: string, readonly says: ComponentChildren, readonly text: string }} ShownOnce
 */

/**
 * An operator's action on one or many keys. A dialog states the effect before the action.
 *
 * @typedef {object} Action
 * @property {string} button
 * @property {string} [buttonOfMany]
 * @property {(key: Key & Partial<KeyDetail>) => boolean} isOffered on the page of the key
 * @property {string} title followed by the key's id, or by "3 keys"
 * @property {string} [titleOfMany]
 * @property {(subject: Subject, where: string) => string} says `where` is "on 3 processes"
 * @property {boolean} [isTyped] the operator must type the id or the number of the keys, because the keys stop working
 * @property {(keys: readonly Key[]) => ComponentChildren} [fields]
 * @property {(form: FormData) => Change} prepare
 * @property {ManyWords} words the result of many keys
 * @property {(ids: string) => string} [commandForFile] the arguments of `tollgate keys` that change keys of files. Set if the
 * admin API changes only directory keys
 * @property {string} [optionsForFile] sentences about further options of this command
 * @property {boolean} [isEnd] whether the action deletes the key
 *
 * @typedef {object} Change the same for all keys, for example with the same end of a ban
 * @property {(id: string) => Promise<Response | undefined>} run
 * @property {(id: string, response: Response | undefined) => string} done the result in words
 * @property {string} [terms] what applies to each of many changed keys, such as "90 a minute until …"
 * @property {(id: string, response: Response) => ShownOnce} [once] what the dialog shows after the action on one key
 *
 * @typedef {{ who: string, whose: string, keys: readonly Key[] }} Subject `who` is "acme" or "each key", and `whose` "the
 * key's" or "each key's"
 * @typedef {Changed & { isUnchanged?: boolean | undefined }} Response `isUnchanged`: the key was as requested already
 */

/** @param {Key} key */
const isInDirectory = ({ source }) => source === 'directory';
/** @param {Key} key */
const isRevoked = ({ state }) => state === 'disabled';

/** @satisfies {Record<string, Action>} */
export const actions = {
  unban: {
    button: 'Lift the ban…',
    buttonOfMany: 'Lift the bans…',
    isOffered: ({ ban }) => ban !== undefined,
    title: 'Lift the ban of',
    titleOfMany: 'Lift the bans of',
    says: ({ who }, where) =>
      `The ban of ${who} ends within a second, ${where}. Earlier refusals no longer count towards the next ban. Used requests stay counted.`,
    prepare: () => ({
      async run(id) {
        const response = await change('POST', '/keys/{id}/unban', { params: { id } });
        return { ...response, isUnchanged: response.wasBanned === false };
      },
      done: (id) => `The ban of ${id} is lifted.`,
    }),
    words: manyWords.unban,
  },
  ban: {
    button: 'Ban…',
    isOffered: (key) => key.ban === undefined && !isRevoked(key),
    title: 'Ban',
    says: ({ who }, where) =>
      `The next request of ${who} gets 429, ${where}, until the end of the ban. You can lift the ban earlier. It does not make later bans longer.`,
    fields: banFields,
    prepare(form) {
      const body = banIn(form);
      const until = `until ${fullInstant(Date.parse(body.untilAt))}`;
      return {
        run: (id) => change('POST', '/keys/{id}/ban', { params: { id }, body }),
        done: (id) => `${id} is banned ${until}.`,
        terms: until,
      };
    },
    words: manyWords.ban,
  },
  grant: {
    button: 'Grant more…',
    isOffered: (key) => !isRevoked(key),
    title: 'Grant other limits to',
    says: ({ whose, keys }, where) =>
      `The new limits replace ${whose} own limits within a second, ${where}, or from the time that you choose. The grant ends by itself. Used requests stay counted.${replacedText(keys)}`,
    fields: grantFields,
    prepare(form) {
      const body = grantIn(form);
      const { limits, fromAt, untilAt } = body;
      const from = fromAt === undefined ? '' : ` from ${fullInstant(Date.parse(fromAt))}`;
      const terms = `${limitsInWords(limits)}${from} until ${fullInstant(Date.parse(untilAt))}`;
      return {
        run: (id) => change('POST', '/keys/{id}/grant', { params: { id }, body }),
        done: (id) => `${id} ${fromAt === undefined ? 'has' : 'gets'} ${terms}.`,
        terms,
      };
    },
    words: manyWords.grant,
  },
  ungrant: {
    button: 'End the grant…',
    buttonOfMany: 'End the grants…',
    isOffered: ({ grant }) => grant !== undefined,
    title: 'End the grant of',
    titleOfMany: 'End the grants of',
    says: ({ whose }, where) =>
      `Within a second, ${whose} own limits apply again, ${where}. Used requests stay counted.`,
    prepare: () => ({
      run: (id) => change('DELETE', '/keys/{id}/grant', { params: { id } }),
      done: (id) => `The grant of ${id} has ended. Its own limits apply.`,
    }),
    words: manyWords.ungrant,
  },
  edit: {
    button: 'Edit plan…',
    isOffered: isInDirectory,
    title: 'Edit the plan of',
    says: ({ who, whose }, where) =>
      `The plan of ${who} changes within a second, ${where}, or from the time that you choose. The limits of the new plan replace ${whose} own limits. Used requests stay counted.`,
    fields: (keys) => html`<${PlanFields} keys=${keys} />`,
    prepare(form) {
      const { plan, fromAt } = planIn(form);
      if (fromAt === undefined) {
        return {
          run: (id) => changeDefinition(id, { plan, limits: null }),
          done: (id) => `${id} is on the plan ${plan}.`,
          terms: `plan ${plan}`,
        };
      }
      const from = `from ${fullInstant(Date.parse(fromAt))}`;
      return {
        async run(id) {
          const { body: key, version } = await askWithVersion('/keys/{id}', { params: { id } });
          return change('PATCH', '/keys/{id}', {
            params: { id },
            body: { changes: withChange(key.changes, { from: fromAt, plan }) },
            // A PATCH replaces the whole list.
            ...(version && { headers: { 'If-Match': version } }),
          });
        },
        done: (id) => `${id} is on the plan ${plan} ${from}.`,
        terms: `plan ${plan} ${from}`,
      };
    },
    words: manyWords.edit,
    commandForFile: (ids) => `edit --ids ${ids} --plan PLAN`,
    optionsForFile:
      'With --from DATE, the plan changes at this date. With --withdraw in place of --plan, the later changes of the plan are withdrawn.',
  },
  rotate: {
    button: 'Rotate…',
    isOffered: isInDirectory,
    title: 'A new secret for',
    titleOfMany: 'New secrets for',
    says: ({ who }, where) =>
      `A new secret for ${who} is issued and shown once. The old secrets end after the time that you choose. Requests with an old secret then get 401, ${where}.`,
    fields: rotateFields,
    prepare(form) {
      const body = overlapIn(form);
      const { overlap } = body;
      const others =
        overlap === undefined
          ? 'the old secrets stay valid'
          : overlap === '0s'
            ? 'the old secrets have ended'
            : `the old secrets end in ${overlaps[overlap]}`;
      return {
        run: (id) => change('POST', '/keys/{id}/secrets', { params: { id }, body }),
        done: (id) => `${id} has a new secret; ${others}.`,
        terms: others,
      };
    },
    words: manyWords.rotate,
    commandForFile: (ids) => `rotate --ids ${ids} --out secrets.csv`,
    optionsForFile:
      'The old secrets end after 24 hours. --overlap 7d or --overlap DATE sets another end, and --overlap 0s ends them at once.',
  },
  restore: {
    button: 'Restore…',
    isOffered: isRevoked,
    title: 'Restore',
    says: ({ who }, where) =>
      `The secrets of ${who} work again within a second, ${where}. Secrets that have ended stay ended.`,
    prepare: () => ({
      run: (id) => changeDefinition(id, { disabled: false }),
      done: (id) => `${id} is restored.`,
    }),
    words: manyWords.restore,
    commandForFile: (ids) => `restore --ids ${ids}`,
  },
  revoke: {
    button: 'Revoke…',
    isOffered: (key) => isInDirectory(key) && !isRevoked(key),
    title: 'Revoke',
    says: ({ who }, where) =>
      `The next request of ${who} gets 401, ${where}. Nothing is deleted. You can restore ${who} later.`,
    isTyped: true,
    prepare: () => ({
      run: (id) => changeDefinition(id, { disabled: true }),
      done: (id) => `${id} is revoked. Its requests get 401.`,
    }),
    words: manyWords.revoke,
    commandForFile: (ids) => `revoke --ids ${ids}`,
  },
  delete: {
    button: 'Delete…',
    isOffered: isInDirectory,
    title: 'Delete',
    says: ({ who }, where) =>
      `${who} and its secrets are deleted permanently. The next request of ${who} gets 401, ${where}. A grant ends. Used requests and a ban stay, and apply to a later key with this id.`,
    isTyped: true,
    prepare: () => ({
      run: (id) => change('DELETE', '/keys/{id}', { params: { id } }),
      done: (id, response) =>
        `${id} is deleted. Its requests get 401.${response?.kept ? ` A later key with this id inherits ${keptInWords(response.kept)}.` : ''}`,
    }),
    words: { verb: 'delete', done: 'deleted', unchanged: 'deleted already' },
    isEnd: true,
  },
};

/** @param {readonly Key[]} keys */
function replacedText(keys) {
  const granted = keys.filter(({ grant }) => grant !== undefined);
  if (granted.length === 0) return '';
  if (keys.length > 1)
    return ` The new grant replaces the present grant of ${counted(granted.length, 'key')}.`;
  return granted[0]?.grant?.fromMs
    ? ' The key has a grant that begins later. End that grant first.'
    : ' The new grant replaces the present grant.';
}

/** @param {string} id @param {object} body the changed members of the definition of a directory key */
const changeDefinition = (id, body) => change('PATCH', '/keys/{id}', { params: { id }, body });

/**
 * The later changes of a key's plan with another one. A change at the same time is replaced.
 *
 * @param {KeyDetail['changes']} changes
 * @param {{ from: string, plan: string }} added
 */
function withChange(changes = [], added) {
  const atMs = (/** @type {{ from: string }} */ { from }) => Date.parse(from);
  const others = changes.filter((one) => atMs(one) > nowMs() && atMs(one) !== atMs(added));
  return [...others, added].sort((a, b) => atMs(a) - atMs(b));
}

/** @param {NonNullable<Changed['kept']>} kept */
function keptInWords({ windows = [], ban }) {
  const used = windows.map(({ name, used }) => `${counted(used, 'used unit')} in this ${windowText(name)}`);
  return [...used, ...(ban ? [`a ban until ${fullInstant(ban.untilMs)}`] : [])].join(', ');
}

/**
 * The durations of a grant that the operator can choose.
 *
 * @type {Record<string, { text: string, untilMs: (fromMs: number) => number }>}
 */
const spans = {
  '1h': { text: 'for an hour', untilMs: (fromMs) => fromMs + hourMs },
  '6h': { text: 'for 6 hours', untilMs: (fromMs) => fromMs + 6 * hourMs },
  day: {
    text: 'until the end of that day (UTC)',
    untilMs: (fromMs) => (Math.floor(fromMs / dayMs) + 1) * dayMs,
  },
  '24h': { text: 'for 24 hours', untilMs: (fromMs) => fromMs + dayMs },
  '7d': { text: 'for 7 days', untilMs: (fromMs) => fromMs + 7 * dayMs },
};

/** @param {readonly Key[]} keys */
function grantFields(keys) {
  const windows = Map.groupBy(
    keys.flatMap((key) => key.windows),
    ({ name }) => name,
  );
  return html`${[...windows].map(
    ([name, all]) => html`<div class="field" key=${name}>
        <label for=${`grant-${name}`}>Requests ${per(name)} (now ${rangeText(all.map(({ limit }) => limit))})</label>
        <input id=${`grant-${name}`} name=${name} type="number" min="1" step="1" placeholder="unchanged" />
      </div>`,
  )}
    ${fromField()}
    <div class="field">
      <label for="grant-span">How long</label>
      <select id="grant-span" name="span">
        ${Object.entries(spans).map(([name, { text }]) => html`<option key=${name} value=${name} selected=${name === 'day'}>${text}</option>`)}
      </select>
    </div>`;
}

/** "5", or "5 to 100". @param {readonly number[]} numbers */
function rangeText(numbers) {
  const [lowest, highest] = [Math.min(...numbers), Math.max(...numbers)];
  return lowest === highest ? figure(lowest) : `${figure(lowest)} to ${figure(highest)}`;
}

const fromField = () => html`<div class="field">
  <label for="from">From (UTC; empty means at once)</label>
  <input id="from" name="from" type="datetime-local" />
</div>`;

/** The chosen time, epoch ms; undefined means at once, as for a time in the past. @param {FormData} form */
function fromIn(form) {
  const chosenMs = Date.parse(`${form.get('from')}Z`);
  return chosenMs > nowMs() ? chosenMs : undefined;
}

/** @param {{ keys: readonly Key[] }} props */
function PlanFields({ keys }) {
  const plans = usePolled('/plans', 60_000).body?.plans ?? [];
  const present = [...new Set(keys.map(({ plan }) => plan))];
  return html`<div class="field">
      <label for="plan">Plan (now ${someIds(present)})</label>
      <select id="plan" name="plan" required>
        <option value="">choose a plan</option>
        ${plans.map(({ name }) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </div>
    ${fromField()}`;
}

/** @param {FormData} form @returns {{ plan: string, fromAt?: string }} */
function planIn(form) {
  const fromMs = fromIn(form);
  const plan = String(form.get('plan'));
  return fromMs === undefined ? { plan } : { plan, fromAt: new Date(fromMs).toISOString() };
}

function banFields() {
  return html`<div class="field">
      <label for="ban-span">How long</label>
      <select id="ban-span" name="span">
        ${Object.entries(spans).map(([name, { text }]) => html`<option key=${name} value=${name} selected=${name === '1h'}>${text}</option>`)}
      </select>
    </div>
    <div class="field">
      <label for="ban-reason">Reason (may be empty)</label>
      <input id="ban-reason" name="reason" maxlength="200" autocomplete="off" />
    </div>`;
}

/** Makes the request body for `/ban` from the form. @param {FormData} form @returns {{ untilAt: string, reason?: string }} */
function banIn(form) {
  const untilAt = new Date(spans[String(form.get('span'))]?.untilMs(nowMs()) ?? nowMs()).toISOString();
  const reason = String(form.get('reason')).trim();
  return reason === '' ? { untilAt } : { untilAt, reason };
}

/** @typedef {Record<string, any> & { groups?: Record<string, Record<string, number>> }} GrantedLimits */

/**
 * Makes the request body for `/grant` from the form.
 *
 * @param {FormData} form
 * @returns {{ limits: GrantedLimits, fromAt?: string, untilAt: string }}
 */
function grantIn(form) {
  /** @type {GrantedLimits} */
  const limits = {};
  for (const [name, value] of form) {
    if (name === 'from' || name === 'span' || value === '') continue;
    const window = windowIn(name);
    const field = `per${window.charAt(0).toUpperCase()}${window.slice(1)}`;
    const group = groupIn(name);
    if (group === undefined) limits[field] = Number(value);
    else limits.groups = { ...limits.groups, [group]: { ...limits.groups?.[group], [field]: Number(value) } };
  }
  const laterMs = fromIn(form);
  const fromMs = laterMs ?? nowMs();
  const untilMs = spans[String(form.get('span'))]?.untilMs(fromMs) ?? fromMs;
  const untilAt = new Date(untilMs).toISOString();
  return laterMs === undefined
    ? { limits, untilAt }
    : { limits, fromAt: new Date(laterMs).toISOString(), untilAt };
}

/** @type {Record<string, string>} */
const overlaps = { '0s': 'at once', '1h': 'an hour', '24h': '24 hours', '7d': '7 days', '30d': '30 days' };

function rotateFields() {
  return html`<div class="field">
    <label for="overlap">The old secrets end</label>
    <select id="overlap" name="overlap">
      ${Object.entries(overlaps).map(
        ([value, text]) =>
          html`<option key=${value} value=${value} selected=${value === '24h'}>${value === '0s' ? text : `in ${text}`}</option>`,
      )}
      <option value="">never</option>
    </select>
  </div>`;
}

/** Makes the request body for `/secrets` from the form. @param {FormData} form @returns {{ overlap?: string }} */
function overlapIn(form) {
  const overlap = String(form.get('overlap'));
  return overlap === '' ? {} : { overlap };
}
