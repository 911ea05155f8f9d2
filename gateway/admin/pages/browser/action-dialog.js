import { useEffect, useRef, useState } from 'preact/hooks';
import { counted, figure } from '../../../shared/words/figures.js';
import { awayText } from '../../words/list.js';
import { notTriedText, someIds, summaryOf } from '../../words/many-keys.js';
import { askForAll, toApiError } from './api.js';
import { Dialog } from './dialog.js';
import { CopyButton, html } from './parts.js';
import { saveFile } from './save-file.js';

/** @import { Outcome } from '../../words/many-keys.js' */
/** @import { Key } from '../../words/keys.js' */
/** @import { Action, Change, ShownOnce } from './actions.js' */
/** @import { Live } from './live.js' */

/**
 * The effect of an action. `text` is the result of one changed key.
 *
 * @typedef {{ text: string, failedIds: readonly string[], isEnd: boolean }} Done
 * @typedef {{ readonly id: string, readonly secret: string }} Issued
 *
 * `texts`: a result for each changed or unchanged key. `once`: what the dialog shows after an action on one key.
 *
 * @typedef {Outcome & { issued: Issued[], texts: string[], once?: ShownOnce | undefined }} Changes
 */

/**
 * The dialog of an action on one or many keys. The dialog states the effect, asks for the inputs, changes the keys, and
 * shows new secrets. `isSummed`: the dialog stays open with the result, because the page does not show it.
 *
 * @param {{ of: readonly Key[], action: Action, live: Live, isSummed?: boolean, onDone: (done: Done) => void, onClose:
 * () => void }} props
 */
export function ActionDialog({ of: keys, action, live: { state }, isSummed = false, onDone, onClose }) {
  // The dialog keeps the keys for which it was opened, because the page may show other keys when a response arrives.
  const [{ targets, left }] = useState(() => divide(keys, action));
  const [typed, setTyped] = useState('');
  const [error, setError] = useState('');
  /** The number of the keys whose change has ended, while a change is under way. */
  const [ended, setEnded] = useState(/** @type {number | undefined} */ (undefined));
  // New secrets are only in the state of this dialog, and are dropped when the dialog closes.
  const [result, setResult] = useState(
    /** @type {{ lines: readonly string[], issued: readonly Issued[], once?: ShownOnce | undefined } | undefined} */ (
      undefined
    ),
  );
  const named = targets.length > 0 ? targets : left;
  const [first] = named;
  const where = `on ${counted(state?.processes.length ?? 0, 'process', 'processes')}`;
  const one = named.length === 1 ? first?.id : undefined;
  const isUnderWay = ended !== undefined;
  const toType = one ?? String(targets.length);
  const isConfirmed = targets.length > 0 && (!action.isTyped || typed === toType);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    // The button stays enabled during the requests, because a disabled button loses the focus.
    if (isUnderWay || !isConfirmed) return;
    const change = action.prepare(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)));
    setEnded(0);
    setError('');
    const { issued, texts, once, ...outcome } = await changeEach(targets, change, setEnded);
    setEnded(undefined);
    const { changed, failed } = outcome;
    if (!action.isEnd || failed.length > 0) askForAll();
    if (one !== undefined && failed[0] !== undefined) return setError(failed[0].why);
    const applies = `This applies ${where}.`;
    const text = `${texts[0]} ${applies}`;
    onDone({ text, failedIds: failed.map(({ id }) => id), isEnd: action.isEnd ?? false });
    if (!isSummed && issued.length === 0 && once === undefined) return onClose();
    const again = 'The keys that failed stay selected, so you can try again.';
    const lines =
      one === undefined
        ? [...summaryOf(outcome, action.words, again, change.terms), ...(changed.length > 0 ? [applies] : [])]
        : [changed.length === 0 ? `${one}: ${action.words.unchanged}.` : text];
    return setResult({ lines: isSummed ? lines : [], issued, once });
  };
  if (result?.once !== undefined) return html`<${Once} shown=${result.once} onClose=${onClose} />`;
  if (result !== undefined) return html`<${Result} ...${result} onClose=${onClose} />`;
  const title = one === undefined ? (action.titleOfMany ?? action.title) : action.title;
  const who = one ?? 'each key';
  const whose = one === undefined ? "each key's" : "the key's";
  return html`<${Dialog} title=${`${title} ${one ?? counted(named.length, 'key')}`} onClose=${onClose} isHeld=${isUnderWay}>
    <form onSubmit=${submit}>
      ${one === undefined && html`<p class="muted">${someIds(named.map(({ id }) => id))}</p>`}
      <${LeftOut} keys=${left} of=${keys.length} action=${action} />
      ${
        targets.length > 0 &&
        html`<p>${action.says({ who, whose, keys: targets }, where)}</p>
          ${action.fields?.(targets)}
          ${
            action.isTyped &&
            html`<label for="typed">Type <b>${toType}</b> to confirm</label>
              <input id="typed" autocomplete="off" spellcheck=${false} onInput=${(/** @type {any} */ { currentTarget }) => setTyped(currentTarget.value)} />`
          }
          ${
            state?.store.available === false &&
            html`<p class="near" role="status">${awayText(state.store)}, and changes are only in Redis. The gateway refuses them until Redis replies.</p>`
          }
          <p class="bad" role="alert">${error}</p>
          <p class="muted" role="status">${isUnderWay && waitingText(ended, targets.length)}</p>
          <button type="submit" class="main" disabled=${!isConfirmed} aria-disabled=${isUnderWay}>${action.button.replace('…', '')}</button>`
      }
    </form>
  <//>`;
}

/** The admin API changes the bans and grants of all keys, and other members only of directory keys. @param {readonly Key[]} keys @param {Action} action */
function divide(keys, { commandForFile }) {
  const isLeft = (/** @type {Key} */ { source }) => commandForFile !== undefined && source !== 'directory';
  return { targets: keys.filter((key) => !isLeft(key)), left: keys.filter(isLeft) };
}

/** @param {number} ended @param {number} all */
function waitingText(ended, all) {
  return all === 1 ? 'Waiting for the gateway …' : `${figure(ended)} of ${figure(all)} keys …`;
}

/** @param {{ keys: readonly Key[], of: number, action: Action }} props */
function LeftOut({ keys, of, action: { commandForFile, optionsForFile } }) {
  if (keys.length === 0 || commandForFile === undefined) return undefined;
  const command = `tollgate keys ${commandForFile(keys.map(({ id }) => id).join(','))}`;
  const which =
    of === 1
      ? 'This key is defined in a file, which this page does not edit.'
      : `${figure(keys.length)} of the ${figure(of)} selected keys ${keys.length === 1 ? 'is' : 'are'} defined in files and left out here.`;
  return html`<p>${which} On the machine of the gateway: <code>${command}</code>${optionsForFile && `. ${optionsForFile}`}</p>`;
}

/** How many keys are changed at the same time, and after how many missing responses in a row the others are not tried. */
const [atOnce, unansweredMax] = [4, 2];

/**
 * Changes each key. A failed key does not stop the others.
 *
 * @param {readonly Key[]} keys @param {Change} change @param {(ended: number) => void} tell
 * @returns {Promise<Changes>}
 */
async function changeEach(keys, { run, done, once }, tell) {
  /** @type {Changes} */
  const outcome = { changed: [], unchanged: [], failed: [], issued: [], texts: [] };
  let ended = 0;
  let unanswered = 0;
  const changeOne = async (/** @type {string} */ id) => {
    if (unanswered >= unansweredMax) return void outcome.failed.push({ id, why: notTriedText });
    try {
      const response = await run(id);
      unanswered = 0;
      (response?.isUnchanged ? outcome.unchanged : outcome.changed).push(id);
      outcome.texts.push(done(id, response));
      if (response !== undefined && keys.length === 1) outcome.once = once?.(id, response);
      if (response?.secret !== undefined) outcome.issued.push({ id, secret: response.secret });
    } catch (problem) {
      const { isResponse, message } = toApiError(problem);
      unanswered = isResponse ? 0 : unanswered + 1;
      outcome.failed.push({ id, why: isResponse ? message : noResponseText });
    }
    ended += 1;
    tell(ended);
  };
  const waiting = keys.values();
  const work = async () => {
    for (const { id } of waiting) await changeOne(id);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return outcome;
}

const noResponseText = 'There was no response, so the change may have been made. Check before you repeat it.';

/**
 * The result of an action, with the new secrets. A dialog with the secrets of many keys closes only after a download or a
 * second question.
 *
 * @param {{ lines: readonly string[], issued: readonly Issued[], onClose: () => void }} props
 */
function Result({ lines, issued, onClose }) {
  const [isSaved, setSaved] = useState(issued.length < 2);
  const [isAsked, setAsked] = useState(false);
  // The browser asks before it closes or reloads the tab.
  useEffect(() => {
    if (isSaved) return undefined;
    const ask = (/** @type {Event} */ event) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isSaved]);
  const [first] = issued;
  const title =
    first === undefined
      ? 'Done'
      : issued.length === 1
        ? `The new secret of ${first.id}`
        : `The new secrets of ${counted(issued.length, 'key')}`;
  const rows = ['id,secret', ...issued.map(({ id, secret }) => `${id},${secret}`)];
  const text = issued.length === 1 ? (first?.secret ?? '') : `${rows.join('\n')}\n`;
  const save = () => {
    saveFile('secrets.csv', text);
    setSaved(true);
    setAsked(false);
  };
  return html`<${Dialog} title=${title} onClose=${onClose} isHeld=${!isSaved} onHeld=${() => setAsked(true)}>
    ${lines.length > 0 && html`<${Focused} as="div">${lines.map((line, index) => html`<p key=${index}>${line}</p>`)}<//>`}
    ${
      issued.length > 0 &&
      html`<p>${issued.length === 1 ? 'The secret is' : 'The secrets are'} shown only now. Clients send ${issued.length === 1 ? 'it' : 'them'} as <code>Authorization: Bearer …</code></p>`
    }
    ${
      issued.length > 1 &&
      html`<p>The gateway does not store them. This page drops them when you close this dialog.</p>
        <p><button type="button" class="main" onClick=${save}>Download secrets.csv</button></p>
        <p class="bad" role="alert">${isAsked && 'The secrets are not downloaded. After you close this dialog, nobody can read them again.'}</p>
        ${isAsked && html`<p><button type="button" onClick=${onClose}>Close without a download</button></p>`}`
    }
    ${
      issued.length > 0 &&
      html`${lines.length > 0 ? html`<pre class="secret" tabindex="0">${text}</pre>` : html`<${Focused} as="pre">${text}<//>`}
        <p><${CopyButton} text=${text} /></p>`
    }
    ${lines.length > 0 && isSaved && html`<p><button type="button" onClick=${onClose}>Close</button></p>`}
  <//>`;
}

/** What no later response has, such as a link. @param {{ shown: ShownOnce, onClose: () => void }} props */
function Once({ shown: { title, says, text }, onClose }) {
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p>${says}</p>
    <${Focused} as="pre">${text}<//>
    <p><${CopyButton} text=${text} /></p>
  <//>`;
}

/**
 * Shows its children and gives them the focus, because the button that had the focus no longer exists.
 *
 * @param {{ as: 'pre' | 'div', children?: any }} props
 */
function Focused({ as, children }) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => element.current?.focus(), []);
  return html`<${as} class=${as === 'pre' ? 'secret' : 'summary'} tabindex="0" ref=${element}>${children}<//>`;
}
