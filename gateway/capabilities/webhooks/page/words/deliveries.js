import { isFiltered } from '../../../../admin/words/list.js';
import { counted, figure } from '../../../../shared/words/figures.js';

/** @import { BodyOf } from '../../../../admin/wires/api-types.ts' */
/** @import { Column, List, Part, Say, Sentence, Table, Tone } from '../../../../admin/words/list.js' */

/** @typedef {BodyOf<'/deliveries'>} DeliveriesPage */
/** @typedef {DeliveriesPage['events'][number]} Event */
/** @typedef {Event['deliveries'][number]} Delivery */
/** @typedef {{ readonly event: Event, readonly delivery: Delivery }} Row */

/** The states of a delivery, in the order of the filter. @type {Readonly<Record<Delivery['state'], string>>} */
export const deliveryStates = { failed: 'failed', waiting: 'waiting', delivered: 'delivered' };

/** A waiting delivery is conspicuous only after a failed attempt. @param {Delivery} delivery @returns {Tone | undefined} */
function stateTone({ state, last }) {
  if (state === 'failed') return 'bad';
  return state === 'waiting' && last?.error !== undefined ? 'near' : undefined;
}

/** Returns the answer of a receiver, such as "status 204", or the reason why there was no answer. @param {Delivery['last']} last */
function answerText(last) {
  if (last === undefined) return undefined;
  return last.error ?? (last.status === undefined ? undefined : `status ${last.status}`);
}

/** @type {Readonly<Record<'state' | 'answer' | 'at' | 'attempts' | 'next', Column<Delivery>>>} */
const ofDelivery = {
  state: {
    title: 'State',
    kind: 'state',
    value: ({ state }) => state,
    tone: stateTone,
    page: { width: 'state-word' },
  },
  answer: {
    title: 'Last answer',
    value: ({ last }) => answerText(last),
    tone: ({ state }) => (state === 'failed' ? 'bad' : undefined),
    terminal: { cutsTo: 10 },
  },
  at: { title: 'Last attempt', kind: 'clock', value: ({ last }) => last && Date.parse(last.at) },
  attempts: {
    title: 'Attempts',
    kind: 'count',
    value: ({ attempts }) => attempts,
    terminal: { isOptional: true },
  },
  next: {
    title: 'Next',
    kind: 'until',
    value: ({ nextAt }) => (nextAt === undefined ? undefined : Date.parse(nextAt)),
    terminal: { isOptional: true },
  },
};

/** Makes a column of a delivery a column of a row. @param {Column<Delivery>} column @returns {Column<Row>} */
function inRow({ value, tone, page, ...column }) {
  return {
    ...column,
    value: ({ delivery }, say) => value(delivery, say),
    ...(tone && { tone: ({ delivery }) => tone(delivery) }),
    ...(page?.width && { page: { width: page.width } }),
  };
}

/** @type {List<DeliveriesPage, Row>} */
export const deliveryList = {
  columns: {
    id: { title: 'Id', value: ({ event }) => event.id },
    event: { title: 'Event', value: ({ event }) => event.type, page: { hint: ({ event }) => event.subject } },
    subject: { title: 'Subject', value: ({ event }) => event.subject, terminal: { cutsTo: 10 } },
    state: inRow(ofDelivery.state),
    answer: inRow(ofDelivery.answer),
    receiver: {
      title: 'Receiver',
      value: ({ delivery: { url, receiver } }) => url ?? receiver,
      terminal: { cutsTo: 16 },
    },
    at: { title: 'Event at', kind: 'ago', value: ({ event }) => Date.parse(event.at) },
    attempts: inRow(ofDelivery.attempts),
    next: inRow(ofDelivery.next),
  },
  onTerminal: ['id', 'event', 'subject', 'state', 'answer', 'at', 'receiver', 'next', 'attempts'],
  onPage: ['event', 'state', 'answer', 'receiver', 'at', 'attempts', 'next'],
  inCsv: ['id', 'event', 'subject', 'state', 'answer', 'at', 'receiver', 'next', 'attempts'],
  rows: ({ events }) => events.flatMap((event) => event.deliveries.map((delivery) => ({ event, delivery }))),
  idOf: ({ event, delivery }) => `${event.id} ${delivery.receiver}`,
  head,
  empty: (asked) => ({
    parts: [isFiltered(asked) ? 'No delivery matches these filters.' : 'No event was recorded yet.'],
  }),
};

/** The deliveries of one event. @type {Table<Delivery>} */
export const deliveriesOfEvent = {
  columns: {
    receiver: { title: 'Receiver', value: ({ url, receiver }) => url ?? receiver, terminal: { cutsTo: 12 } },
    id: { title: 'Id', value: ({ receiver }) => receiver, terminal: { isOptional: true } },
    ...ofDelivery,
  },
  onTerminal: ['receiver', 'id', 'state', 'attempts', 'answer', 'at', 'next'],
  onPage: ['receiver', 'state', 'answer', 'at', 'attempts', 'next'],
};

/**
 * States how many deliveries wait or failed, and why, so that an operator sees the problem before the list.
 *
 * @param {DeliveriesPage} page
 * @param {Say} say
 * @returns {readonly Sentence[]}
 */
function head({ counts: { failed, waiting, delivered, dropped, unsent }, problems }, say) {
  /** @type {Part} */
  const failedPart = {
    text: `${figure(failed)} failed`,
    href: '/deliveries?state=failed',
    tone: failed > 0 ? 'bad' : undefined,
  };
  /** @type {Part} */
  const waitingPart = {
    text: `${figure(waiting)} waiting`,
    href: '/deliveries?state=waiting',
    tone: problems.some((problem) => problem.waiting > 0) ? 'near' : undefined,
  };
  return [
    { parts: [failedPart, ', ', waitingPart, `, ${figure(delivered)} delivered.`] },
    ...problems.map((problem) => problemSentence(problem, say)),
    ...(dropped > 0 ? [droppedSentence(dropped)] : []),
    ...(unsent > 0 ? [unsentSentence(unsent)] : []),
  ];
}

/** The text has no countdown, so that the rows of a page keep their place. @param {DeliveriesPage['problems'][number]} problem @param {Say} say @returns {Sentence} */
function problemSentence({ receiver, url = receiver, failed, waiting, last, nextAt }, { clock }) {
  const numbers = [failed > 0 && `${figure(failed)} failed`, waiting > 0 && `${figure(waiting)} waiting`];
  const next = nextAt === undefined ? '' : ` The next attempt is at ${clock(Date.parse(nextAt))}.`;
  const text = `${url}: ${numbers.filter(Boolean).join(', ')}. It last failed at ${clock(Date.parse(last.at))} (${answerText(last) ?? ''}).${next}`;
  return { parts: [text], tone: failed > 0 ? 'bad' : 'near' };
}

/** @param {number} dropped @returns {Sentence} */
function droppedSentence(dropped) {
  const text = `${counted(dropped, 'event was', 'events were')} removed before each receiver got them, because the queue was full.`;
  return { parts: [text], tone: 'bad' };
}

/** @param {number} unsent @returns {Sentence} */
function unsentSentence(unsent) {
  const text = `${counted(unsent, 'event waits', 'events wait')} in the process until Redis accepts them.`;
  return { parts: [text], tone: 'near' };
}

/** The sentences for a gateway without a receiver, around an example. */
export const noReceiver = {
  before: 'No receiver is configured, so no event is sent. Add a receiver to the configuration, for example:',
  example: `notify:
  - url: https://hooks.example.com/tollgate
    secretFile: /run/secrets/hook
    events: [quota.threshold, key.banned, target.down]`,
  command: 'tollgate notify test URL',
  after: 'sends an example of each event to the receiver.',
};
