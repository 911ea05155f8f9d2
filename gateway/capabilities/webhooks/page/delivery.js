import { useState } from 'preact/hooks';
import {
  askForAll,
  change,
  nowMs,
  queryOf,
  toApiError,
  usePolled,
} from '../../../admin/pages/browser/api.js';
import { Dialog } from '../../../admin/pages/browser/dialog.js';
import { fullInstant } from '../../../admin/pages/browser/formats.js';
import { result } from '../../../admin/pages/browser/key-actions.js';
import { columnsOf } from '../../../admin/pages/browser/list.js';
import {
  CopyButton,
  cards,
  html,
  instead,
  Section,
  textWithKey,
  useNow,
} from '../../../admin/pages/browser/parts.js';
import { counted } from '../../../shared/words/figures.js';
import { deliveriesOfEvent } from './words/deliveries.js';

/** @import { BodyOf } from '../../../admin/wires/api-types.ts' */
/** @import { PageProps } from '../../../admin/pages/browser/live.js' */

/** @typedef {BodyOf<'/deliveries/{id}'>} Event */
/** @typedef {Event['deliveries'][number]} Delivery */

/** One webhook event with its deliveries and its body. @param {PageProps} props */
export function DeliveryPage({ params: { id = '' }, live }) {
  const now = useNow();
  const polled = usePolled('/deliveries/{id}', 2_000, { params: { id } });
  const [again, setAgain] = useState(/** @type {readonly Delivery[] | undefined} */ (undefined));
  const [done, setDone] = useState(/** @type {{ text: string, atMs: number } | undefined} */ (undefined));
  const event = polled.body;
  if (event === undefined) return html`<h1>${id}</h1>${instead(polled, '')}`;
  const mayWrite = live.state?.token.may === 'write';
  const configured = event.deliveries.filter(({ isConfigured }) => isConfigured);
  const { text, json } = readBody(event.body);
  const onDone = (/** @type {string} */ said) => {
    setAgain(undefined);
    setDone({ text: said, atMs: nowMs() });
  };
  return html`<div class="heading">
      <h1>${event.type}</h1>
      <p class="muted">${fullInstant(Date.parse(event.at))}</p>
      ${
        mayWrite &&
        configured.length > 0 &&
        html`<div class="actions" role="group" aria-label="Actions">
          <button type="button" onClick=${() => setAgain(configured)}>${configured.length > 1 ? 'Send again to all…' : 'Send again…'}</button>
        </div>`
      }
      ${result(done)}
    </div>
    <p class="sentence">
      ${textWithKey(text ?? event.subject ?? '', keyOf(event))}
      ${event.subject !== undefined && html` <a href=${`/deliveries${queryOf({ subject: event.subject })}`}>All events about ${event.subject}</a>`}
    </p>
    <${Section} title="Deliveries" polled=${polled}>
      ${cards(event.deliveries, {
        idOf: ({ receiver }) => receiver,
        columns: [
          ...columnsOf(deliveriesOfEvent, {
            now,
            cells: {
              receiver: {
                kind: 'id',
                cell: ({ url, receiver }) => html`${url} <span class="muted">${receiver}</span>`,
              },
            },
          }),
          ...(mayWrite && event.deliveries.length > 1
            ? [{ title: html`<span class="sr">Action</span>`, narrow: '', cell: sendButton(setAgain) }]
            : []),
        ],
      })}
    <//>
    <${Section} title="Body" tools=${html`<${CopyButton} text=${event.body} hint="Copies the body exactly as the receivers get it" />`}>
      <p class="muted">webhook-id <code>${event.id}</code></p>
      <pre tabindex="0" aria-label="The body" class="body">${json}</pre>
    <//>
    ${again && html`<${SendAgain} event=${event} to=${again} onDone=${onDone} onClose=${() => setAgain(undefined)} />`}`;
}

/** @param {(to: readonly Delivery[]) => void} setAgain @returns {(delivery: Delivery) => any} */
function sendButton(setAgain) {
  return (delivery) =>
    delivery.isConfigured
      ? html`<button type="button" onClick=${() => setAgain([delivery])}>Send again…</button>`
      : 'not configured';
}

/**
 * The dialog that sends an event again, to one receiver or to all receivers of the configuration.
 *
 * @param {{ event: Event, to: readonly Delivery[], onDone: (said: string) => void, onClose: () => void }} props
 */
function SendAgain({ event, to, onDone, onClose }) {
  const [error, setError] = useState('');
  const [isUnderWay, setUnderWay] = useState(false);
  const [first] = to;
  const where = to.length === 1 ? first?.url : counted(to.length, 'receiver');
  const submit = async (/** @type {globalThis.Event} */ submitted) => {
    submitted.preventDefault();
    // The button stays enabled during the request, because a disabled button loses the focus.
    if (isUnderWay) return;
    setUnderWay(true);
    setError('');
    try {
      const isOne = to.length === 1 && event.deliveries.length > 1;
      const body = isOne ? { receiver: first?.receiver } : {};
      await change('POST', '/deliveries/{id}/send', { params: { id: event.id }, body });
      onDone(`The event is due now for ${where}.`);
    } catch (problem) {
      const { isResponse, message } = toApiError(problem);
      setError(isResponse ? message : 'There was no response, so the event may have been sent again.');
      setUnderWay(false);
    }
    askForAll();
  };
  return html`<${Dialog} title="Send the event again" onClose=${onClose} isHeld=${isUnderWay}>
    <form onSubmit=${submit}>
      <p>
        ${event.type} is sent to ${where} now. The webhook-id and the body stay the same, so a receiver that has the event already can ignore
        it. If the receiver does not accept the event, retries follow for three days.
      </p>
      <p class="bad" role="alert">${error}</p>
      <p class="muted" role="status">${isUnderWay && 'Waiting for the gateway …'}</p>
      <button type="submit" class="main" aria-disabled=${isUnderWay}>Send again</button>
    </form>
  <//>`;
}

/** The id of the key that the event is about. @param {Event} event */
function keyOf({ subject }) {
  return subject?.startsWith('key ') ? subject.slice('key '.length) : undefined;
}

/** @param {string} body @returns {{ text: string | undefined, json: string }} the sentence of the event, and its JSON for people */
function readBody(body) {
  try {
    const parsed = JSON.parse(body);
    const text = parsed?.data?.text;
    return { text: typeof text === 'string' ? text : undefined, json: JSON.stringify(parsed, null, 2) };
  } catch {
    return { text: undefined, json: body };
  }
}
