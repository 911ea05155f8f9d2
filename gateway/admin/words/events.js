import { counted } from '../../shared/words/figures.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { Entry, Say, Timeline } from './list.js' */

/** @typedef {BodyOf<'/events'>} EventsPage */
/** @typedef {EventsPage['events'][number]} Event */

/** @type {Timeline<EventsPage, Event>} */
export const eventList = {
  titles: ['Kind', 'Event'],
  items: ({ events }) => events,
  entry,
  empty: 'No such events in this period.',
  inCsv: {
    at: ({ at }) => at,
    began_at: ({ beganAt }) => beganAt,
    kind: ({ kind }) => kind,
    group: ({ group }) => group,
    key: ({ key }) => key,
    upstream: ({ upstream }) => upstream,
    target: ({ target }) => target,
    processes: ({ processes }) => processes,
    text: ({ text }) => text,
  },
};

/** @param {Event} event @param {Say} say @returns {Entry} */
function entry({ id, at, beganAt, group, kind, text, key, processes }, { clock }) {
  const isOpen = group === 'incident' && beganAt === undefined && kind !== 'worker_ended';
  const [beganMs, endMs] = [Date.parse(beganAt ?? at), Date.parse(at)];
  const lasted = `from ${clock(beganMs)} to ${clock(endMs)}`;
  return {
    ...{ id, at, label: group, text },
    ...(isOpen || kind === 'reload_failed' ? { tone: 'near' } : {}),
    ...(key === undefined ? {} : { key }),
    details: [
      // The text says when the requests failed. The event is reported only after a calm minute.
      ...(beganAt === undefined || kind === 'upstream_well' ? [] : [{ parts: [lasted] }]),
      ...(processes > 1 ? [{ parts: [`seen by ${counted(processes, 'process', 'processes')}`] }] : []),
    ],
  };
}
