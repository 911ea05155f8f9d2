import { useEffect, useRef, useState } from 'preact/hooks';
import { counted, dayMs, figure, hourMs } from '../../../shared/words/figures.js';
import { groupIn, limitsInWords, per, windowIn, windowText } from '../../../shared/words/limit-names.js';
import { askForAll, change, nowMs, toApiError } from './api.js';
import { Dialog } from './dialog.js';
import { fullInstant } from './formats.js';
import { CopyButton, html, Instant } from './parts.js';

/** @import { KeyAction, ShownOnce } from '../../../capabilities/interfaces/pages.ts' */
/** @import { BodyOf, Changed } from '../../wires/api-types.ts' */

/**
 * @typedef {BodyOf<'/keys/{id}'>} KeyDetail
 * @typedef {{ text: string, atMs: number }} Done
 */

/** @param {KeyDetail} key */
const isInDirectory = ({ source }) => source === 'directory';
/** @param {KeyDetail} key */
const isRevoked = ({ state }) => state === 'disabled';
/** @param {KeyDetail} key */
const ofKey = ({ id }) => ({ params: { id } });

/** @type {Record<string, KeyAction<Changed>>} */
const actions = {
  unban: {
    button: 'Lift the ban…',
    isOffered: ({ ban }) => ban !== undefined,
    title: 'Lift the ban of',
    says: ({ id }, where) =>
      `${id} can send requests again within a second, ${where}. Earlier refusals no longer count towards the next ban. Used requests stay counted.`,
    run: (key) => change('POST', '/keys/{id}/unban', ofKey(key)),
    done: ({ id }) => `The ban of ${id} is lifted.`,
  },
  ban: {
    button: 'Ban…',
    isOffered: (key) => key.ban === undefined && !isRevoked(key),
    title: 'Ban',
    says: ({ id }, where) =>
      `The next request of ${id} gets 429, ${where}, until the end of the ban. You can lift the ban earlier. It does not make later bans longer.`,
    fields: banFields,
    run: (key, form) => change('POST', '/keys/{id}/ban', { ...ofKey(key), body: banIn(form) }),
    done: ({ id }, form) => `${id} is banned until ${fullInstant(Date.parse(banIn(form).untilAt))}.`,
  },
  grant: {
    button: 'Grant more…',
    isOffered: (key) => !isRevoked(key),
    title: 'Grant other limits to',
    says: ({ grant }, where) =>
      `The new limits replace the key's own limits within a second, ${where}, or from the time that you choose. The grant ends by itself. Used requests stay counted.${grant === undefined ? '' : grant.fromMs ? ' The key has a grant that begins later. End that grant first.' : ' The new grant replaces the present grant.'}`,
    fields: grantFields,
    run: (key, form) => change('POST', '/keys/{id}/grant', { ...ofKey(key), body: grantIn(form) }),
    done: ({ id }, form) => {
      const { limits, fromAt, untilAt } = grantIn(form);
      const until = `until ${fullInstant(Date.parse(untilAt))}`;
      return fromAt === undefined
        ? `${id} has ${limitsInWords(limits)} ${until}.`
        : `${id} gets ${limitsInWords(limits)} from ${fullInstant(Date.parse(fromAt))} ${until}.`;
    },
  },
  ungrant: {
    button: 'End the grant…',
    isOffered: ({ grant }) => grant !== undefined,
    title: 'End the grant of',
    says: (_, where) =>
      `The key's own limits apply again within a second, ${where}. Used requests stay counted.`,
    run: (key) => change('DELETE', '/keys/{id}/grant', ofKey(key)),
    done: ({ id }) => `The grant of ${id} has ended. Its own limits apply.`,
  },
  rotate: {
    button: 'Rotate…',
    isOffered: isInDirectory,
    title: 'A new secret for',
    says: (_, where) =>
      `A new secret is issued and shown once. The old secrets end after the time that you choose. Requests with an old secret then get 401, ${where}.`,
    fields: rotateFields,
    run: (key, form) => change('POST', '/keys/{id}/secrets', { ...ofKey(key), body: overlapIn(form) }),
    done: ({ id }, form) => {
      const { overlap } = overlapIn(form);
      const others =
        overlap === undefined
          ? 'the old secrets stay valid'
          : overlap === '0s'
            ? 'the old secrets have ended'
            : `the old secrets end in ${overlaps[overlap]}`;
      return `${id} has a new secret; ${others}.`;
    },
    once: ({ id }, { secret = '' }) => ({
      title: `The new secret of ${id}`,
      says: html`The secret is shown only now. Clients send it as <code>Authorization: Bearer …</code>`,
      text: secret,
    }),
  },
  restore: {
    button: 'Restore…',
    isOffered: (key) => isInDirectory(key) && isRevoked(key),
    title: 'Restore',
    says: (_, where) =>
      `The key's secrets work again within a second, ${where}. Secrets that have ended stay ended.`,
    run: (key) => change('PATCH', '/keys/{id}', { ...ofKey(key), body: { disabled: false } }),
    done: ({ id }) => `${id} is restored.`,
  },
  revoke: {
    button: 'Revoke…',
    isOffered: (key) => isInDirectory(key) && !isRevoked(key),
    title: 'Revoke',
    says: ({ id }, where) =>
      `The next request of ${id} gets 401, ${where}. Nothing is deleted. You can restore the key later.`,
    isTyped: true,
    run: (key) => change('PATCH', '/keys/{id}', { ...ofKey(key), body: { disabled: true } }),
    done: ({ id }) => `${id} is revoked. Its requests get 401.`,
  },
  delete: {
    button: 'Delete…',
    isOffered: isInDirectory,
    title: 'Delete',
    says: ({ id }, where) =>
      `${id} and its secrets are deleted permanently. The next request of ${id} gets 401, ${where}. A grant ends. Used requests and a ban stay, and apply to a later key with this id.`,
    isTyped: true,
    run: (key) => change('DELETE', '/keys/{id}', ofKey(key)),
    done: ({ id }, _, changed) =>
      `${id} is deleted. Its requests get 401.${changed?.kept ? ` A later key with this id inherits ${keptInWords(changed.kept)}.` : ''}`,
    isEnd: true,
  },
};

/** @param {NonNullable<Changed['kept']>} kept */
function keptInWords({ windows = [], ban }) {
  const used = windows.map(({ name, used }) => `${counted(used, 'used unit')} in this ${windowText(name)}`);
  return [...used, ...(ban ? [`a ban until ${fullInstant(ban.untilMs)}`] : [])].join(', ');
}

/**
 * The buttons are shown only with a token that may write. Actions that make the key stop working come last.
 *
 * @param {{ of: KeyDetail, further: Readonly<Record<string, KeyAction>>, live: import('./live.js').Live, done: Done | undefined,
 *   onDone: (result: string, isEnd?: boolean) => void }} props `further`: the actions of capabilities
 */
export function KeyActions({ of: key, further, live, done, onDone }) {
  const [open, setOpen] = useState(/** @type {string | undefined} */ (undefined));
  const { token, processes = [] } = live.state ?? {};
  if (token?.may !== 'write') return undefined;
  /** @type {[string, KeyAction][]} */
  const all = Object.entries({ ...actions, ...further });
  const offered = all
    .filter(([, { isOffered }]) => isOffered(key))
    .sort(([, a], [, b]) => Number(a.isTyped ?? false) - Number(b.isTyped ?? false));
  const action = all.find(([name]) => name === open)?.[1];
  return html`<div class="actions" role="group" aria-label="Actions">
      ${offered.map(([name, { button }]) => html`<button key=${name} type="button" onClick=${() => setOpen(name)}>${button}</button>`)}
    </div>
    ${result(done)}
    ${
      action &&
      html`<${ActionDialog}
        key=${open}
        of=${key}
        action=${action}
        where=${`on ${counted(processes.length, 'process', 'processes')}`}
        onDone=${onDone}
        onClose=${() => setOpen(undefined)}
      />`
    }`;
}

/**
 * The result of the last action, with its time, because another operator may have undone the action since.
 *
 * @param {Done | undefined} done
 */
export function result(done) {
  return html`<p class="result" role="status">${done?.text}</p>
    ${done && html`<p class="muted">Done <${Instant} atMs=${done.atMs} /></p>`}`;
}

/** @param {{ of: KeyDetail, action: KeyAction, where: string, onDone: (result: string, isEnd?: boolean) => void, onClose: () => void }} props */
function ActionDialog({ of: key, action, where, onDone, onClose }) {
  // The dialog keeps the key for which it was opened, because the page may show another key when the response arrives.
  const [subject] = useState(key);
  const [typed, setTyped] = useState('');
  const [error, setError] = useState('');
  const [isUnderWay, setUnderWay] = useState(false);
  // A new secret is only in the state of this dialog, and is dropped when the dialog closes.
  const [once, setOnce] = useState(/** @type {ShownOnce | undefined} */ (undefined));
  const title = `${action.title} ${subject.id}`;
  const isConfirmed = !action.isTyped || typed === subject.id;
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    // The button stays enabled during the request, because a disabled button loses the focus.
    if (isUnderWay || !isConfirmed) return;
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    setUnderWay(true);
    setError('');
    try {
      const body = await action.run(subject, form);
      onDone(`${action.done(subject, form, body)} This applies ${where}.`, action.isEnd);
      if (!action.isEnd) askForAll();
      if (action.once === undefined || body === undefined) onClose();
      else setOnce(action.once(subject, body));
    } catch (problem) {
      const { isResponse, message } = toApiError(problem);
      setError(
        isResponse
          ? message
          : 'There was no response, so the change may have been made. Check before you repeat it.',
      );
      askForAll();
    }
    setUnderWay(false);
  };
  if (once !== undefined) {
    return html`<${Dialog} title=${once.title} onClose=${onClose}>
      <p>${once.says}</p>
      <${Secret} text=${once.text} />
      <p><${CopyButton} text=${once.text} /></p>
    <//>`;
  }
  return html`<${Dialog} title=${title} onClose=${onClose} isHeld=${isUnderWay}>
    <form onSubmit=${submit}>
      <p>${action.says(subject, where)}</p>
      ${action.fields?.(subject)}
      ${
        action.isTyped &&
        html`<label for="typed">Type <b>${subject.id}</b> to confirm</label>
          <input id="typed" autocomplete="off" spellcheck=${false} onInput=${(/** @type {any} */ { currentTarget }) => setTyped(currentTarget.value)} />`
      }
      <p class="bad" role="alert">${error}</p>
      <p class="muted" role="status">${isUnderWay && 'Waiting for the gateway …'}</p>
      <button type="submit" class="main" disabled=${!isConfirmed} aria-disabled=${isUnderWay}>${action.button.replace('…', '')}</button>
    </form>
  <//>`;
}

/**
 * Shows a new secret or a link and gives it the focus, because the button that had the focus no longer exists.
 *
 * @param {{ text: string }} props
 */
function Secret({ text }) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => element.current?.focus(), []);
  return html`<pre class="secret" tabindex="0" ref=${element}>${text}</pre>`;
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

/** @param {KeyDetail} key */
function grantFields({ windows }) {
  return html`${windows.map(
    ({ name, limit }) => html`<div class="field" key=${name}>
        <label for=${`grant-${name}`}>Requests ${per(name)} (now ${figure(limit)})</label>
        <input id=${`grant-${name}`} name=${name} type="number" min="1" step="1" placeholder="unchanged" />
      </div>`,
  )}
    <div class="field">
      <label for="grant-from">From (your local time; empty means at once)</label>
      <input id="grant-from" name="from" type="datetime-local" />
    </div>
    <div class="field">
      <label for="grant-span">How long</label>
      <select id="grant-span" name="span">
        ${Object.entries(spans).map(([name, { text }]) => html`<option key=${name} value=${name} selected=${name === 'day'}>${text}</option>`)}
      </select>
    </div>`;
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
  const chosenMs = Date.parse(String(form.get('from')));
  // As in the API, a start time in the past means that the grant begins immediately.
  const isLater = chosenMs > nowMs();
  const fromMs = isLater ? chosenMs : nowMs();
  const untilMs = spans[String(form.get('span'))]?.untilMs(fromMs) ?? fromMs;
  const untilAt = new Date(untilMs).toISOString();
  return isLater ? { limits, fromAt: new Date(fromMs).toISOString(), untilAt } : { limits, untilAt };
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
