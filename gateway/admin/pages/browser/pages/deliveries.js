import { usePolled } from '../api.js';
import { clock, count, counted, duration } from '../formats.js';
import {
  cards,
  choicesInAddress,
  html,
  Instant,
  instead,
  paging,
  Section,
  selectInAddress,
  useNow,
} from '../parts.js';
import { deliveryPath } from '../router.js';

/** @import { BodyOf } from '../../../wires/api-types.ts' */
/** @import { Column } from '../parts.js' */
/** @import { PageProps } from '../routes.js' */

/** @typedef {BodyOf<'/deliveries'>} Page */
/** @typedef {Page['events'][number]} Event */
/** @typedef {Event['deliveries'][number]} Delivery */
/** @typedef {Page['problems'][number]} Problem */

const perPage = 50;
const states = { '': 'all', failed: 'failed', waiting: 'waiting', delivered: 'delivered' };
/** The types of events. A test compares this list with the types of the gateway. */
const types = [
  'quota.threshold',
  'key.banned',
  'key.unbanned',
  'key.created',
  'key.revoked',
  'key.rotated',
  'key.expiring',
  'secret.leaked',
  'operation.sunset',
  'target.down',
  'target.up',
  'store.away',
  'store.back',
  'config.rejected',
  'config.reloaded',
  'plan.changed',
  'plan.reverted',
  'usage.paused',
];

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
    return html`<${Section} title="Deliveries" heading="h1" polled=${polled}>${noReceiver()}<//>`;
  }
  const rows = (body?.events ?? []).flatMap((event) =>
    event.deliveries.map((delivery) => ({ event, delivery })),
  );
  const isFiltered = [...Object.values(filter), after].some((value) => value !== undefined);
  const tools = filters(filter, body?.receivers ?? []);
  return html`<${Section} title="Deliveries" heading="h1" polled=${polled} tools=${tools} name="deliveries">
    ${body && summary(body, now)}
    ${
      rows.length === 0
        ? instead(polled, isFiltered ? 'No delivery matches these filters.' : 'No event was recorded yet.')
        : cards(rows, {
            key: query.toString(),
            isSteady: true,
            idOf: ({ event, delivery }) => `${event.id} ${delivery.receiver}`,
            columns: columns(now),
          })
    }
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
    ${selectInAddress('type', 'Event', [['', 'any event'], ...types.map((one) => [one, one])], type)}
    ${
      (receivers.length > 1 || receiver !== undefined) &&
      selectInAddress('receiver', 'Receiver', [['', 'any receiver'], ...options], receiver)
    }
    ${subject !== undefined && selectInAddress('subject', 'Subject', [['', 'any subject']], subject)}
  </div>`;
}

/** @param {number} now @returns {Column<{ event: Event, delivery: Delivery }>[]} */
function columns(now) {
  return [
    {
      title: 'Event',
      kind: 'id',
      cell: ({ event }) =>
        html`<a href=${deliveryPath(event.id)}>${event.type}</a> <bdi class="muted">${event.subject}</bdi>`,
      cellHint: ({ event }) => event.subject,
    },
    { title: 'State', width: 'state-word', cell: ({ delivery }) => deliveryState(delivery) },
    {
      title: 'Last answer',
      cell: ({ delivery: { last } }) => answerText(last),
      isBad: ({ delivery: { state } }) => state === 'failed',
    },
    { title: 'Receiver', cell: ({ delivery }) => delivery.url ?? delivery.receiver },
    {
      title: 'Event at',
      kind: 'number',
      cell: ({ event }) => html`<${Instant} atMs=${Date.parse(event.at)} />`,
    },
    { title: 'Attempts', kind: 'number', cell: ({ delivery }) => count(delivery.attempts) },
    { title: 'Next', kind: 'number', cell: ({ delivery: { nextAt } }) => nextText(nextAt, now) },
  ];
}

/** States how many deliveries wait or failed, and why. @param {Page} page @param {number} now */
function summary({ counts, problems }, now) {
  const { failed, waiting, delivered, dropped, unsent } = counts;
  const failedTone = failed > 0 ? 'bad' : '';
  const waitingTone = problems.some((problem) => problem.waiting > 0) ? 'near' : '';
  return html`<div class="sentence">
    <p>
      <a class=${failedTone} href="/deliveries?state=failed">${count(failed)} failed</a>, <a class=${waitingTone} href="/deliveries?state=waiting">${count(waiting)} waiting</a>, ${count(delivered)} delivered.
    </p>
    ${problems.map((problem) => html`<p key=${problem.receiver} class=${problem.failed > 0 ? 'bad' : 'near'}>${problemText(problem, now)}</p>`)}
    ${dropped > 0 && html`<p class="bad">${counted(dropped, 'event was', 'events were')} removed before each receiver got them, because the queue was full.</p>`}
    ${unsent > 0 && html`<p class="near">${counted(unsent, 'event waits', 'events wait')} in the process until Redis accepts them.</p>`}
  </div>`;
}

/** The text has no countdown, so that the rows below keep their place. @param {Problem} problem @param {number} now */
function problemText({ receiver, url = receiver, failed, waiting, last, nextAt }, now) {
  const numbers = [failed > 0 && `${count(failed)} failed`, waiting > 0 && `${count(waiting)} waiting`];
  const next = nextAt === undefined ? '' : ` The next attempt is at ${clock(Date.parse(nextAt), now)}.`;
  return `${url}: ${numbers.filter(Boolean).join(', ')}. It last failed at ${clock(Date.parse(last.at), now)} (${answerText(last)}).${next}`;
}

function noReceiver() {
  return html`<div class="empty">
    <p>No receiver is configured, so no event is sent. Add a receiver to the configuration, for example:</p>
    <pre tabindex="0" aria-label="Example">${example}</pre>
    <p>The command <code>tollgate notify test URL</code> sends an example of each event to the receiver.</p>
  </div>`;
}

const example = `notify:
  - url: https://hooks.example.com/tollgate
    secretFile: /run/secrets/hook
    events: [quota.threshold, key.banned, target.down]`;

/** @param {Delivery} delivery */
export function deliveryState({ state, last }) {
  const isRetried = state === 'waiting' && last?.error !== undefined;
  return html`<span class=${`state ${state === 'failed' ? 'bad' : isRetried ? 'near' : ''}`}>${state}</span>`;
}

/** The answer of a receiver, or the reason why there was no answer. @param {Delivery['last']} last */
export function answerText(last) {
  if (last === undefined) return '';
  return last.error ?? (last.status === undefined ? '' : `status ${last.status}`);
}

/** @param {string | undefined} nextAt @param {number} now */
export function nextText(nextAt, now) {
  if (nextAt === undefined) return '';
  const inMs = Date.parse(nextAt) - now;
  return inMs < 1_000 ? 'now' : `in ${duration(inMs)}`;
}
