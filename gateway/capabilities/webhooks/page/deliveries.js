import { usePolled } from '../../../admin/pages/browser/api.js';
import { listHead, listTable } from '../../../admin/pages/browser/list.js';
import {
  choicesInAddress,
  html,
  paging,
  Section,
  selectInAddress,
  useNow,
} from '../../../admin/pages/browser/parts.js';
import { webhookEventTypes } from '../../../shared/words/event-names.js';
import { deliveryList, deliveryStates, noReceiver } from './words/deliveries.js';

/** @import { BodyOf } from '../../../admin/wires/api-types.ts' */
/** @import { PageProps } from '../../../admin/pages/browser/live.js' */

/** @typedef {BodyOf<'/deliveries'>} Page */

const perPage = 50;
const states = { '': 'all', ...deliveryStates };

/**
 * The webhook deliveries of all processes, the newest event first. The first lines of the page state how many deliveries wait or failed, and
 * why.
 *
 * @param {PageProps} props
 */
export function Deliveries({ query }) {
  const now = useNow();
  const [state, type, receiver, subject, after] = ['state', 'type', 'receiver', 'subject', 'after'].map(
    (name) => query.get(name) ?? undefined,
  );
  const filter = { state, type, receiver, subject };
  const polled = usePolled('/deliveries', 4_000, { query: { ...filter, limit: perPage, after } });
  const { body } = polled;
  if (body && body.receivers.length === 0 && body.counts.events === 0) {
    return html`<${Section} title="Deliveries" heading="h1" polled=${polled}>${withoutReceiver()}<//>`;
  }
  const tools = filters(filter, body?.receivers ?? []);
  return html`<${Section} title="Deliveries" heading="h1" polled=${polled} tools=${tools} name="deliveries">
    ${body && listHead(deliveryList, body, now)}
    ${listTable(deliveryList, polled, {
      asked: { filter, after },
      now,
      key: query.toString(),
      cells: {
        event: {
          kind: 'id',
          cell: ({ event }) =>
            html`<a href=${`/deliveries/${encodeURIComponent(event.id)}`}>${event.type}</a> <bdi class="muted">${event.subject}</bdi>`,
        },
      },
    })}
    ${paging({ first: 'Newest', further: 'Older', after, next: body?.next })}
  <//>`;
}

/**
 * @param {Partial<Record<'state' | 'type' | 'receiver' | 'subject', string | undefined>>} filter
 * @param {Page['receivers']} receivers
 */
function filters({ state = '', type, receiver, subject }, receivers) {
  const options = receivers.map(({ id, url }) => [id, url]);
  return html`<div class="filters">
    ${choicesInAddress('state', 'State', states, state)}
    ${selectInAddress('type', 'Event', [['', 'any event'], ...webhookEventTypes.map((one) => [one, one])], type)}
    ${
      (receivers.length > 1 || receiver !== undefined) &&
      selectInAddress('receiver', 'Receiver', [['', 'any receiver'], ...options], receiver)
    }
    ${subject !== undefined && selectInAddress('subject', 'Subject', [['', 'any subject']], subject)}
  </div>`;
}

function withoutReceiver() {
  return html`<div class="empty">
    <p>${noReceiver.before}</p>
    <pre tabindex="0" aria-label="Example">${noReceiver.example}</pre>
    <p>The command <code>${noReceiver.command}</code> ${noReceiver.after}</p>
  </div>`;
}
