import { eventList } from '../../../words/events.js';
import { nowMs, usePolled } from '../api.js';
import { choicesInAddress } from '../parts.js';
import { timelinePage } from '../timeline.js';

/** @import { PageProps } from '../live.js' */

const perPage = 50;
const minuteMs = 60_000;

const kinds = { '': 'all', incident: 'incidents', ban: 'bans', change: 'changes' };
/** The choices for the period. The gateway keeps events for 7 days. */
const periods = { '': '7 days', '24h': '24 h', '1h': '1 h' };
/** @type {Record<string, number>} */
const lengthsMs = { '24h': 24 * 60 * minuteMs, '1h': 60 * minuteMs };

/** Events of all processes, the newest first. @param {PageProps} props */
export function Events({ query }) {
  const after = query.get('after') ?? undefined;
  const kind = query.get('kind') ?? '';
  const period = query.get('period') ?? '';
  const lengthMs = lengthsMs[period];
  // The beginning of the period is rounded to a minute, so that the polled path stays the same for a minute.
  const fromMs = lengthMs && Math.floor((nowMs() - lengthMs) / minuteMs) * minuteMs;
  const from = fromMs && new Date(fromMs).toISOString();
  const polled = usePolled('/events', 4_000, { query: { limit: perPage, after, kind, from } });
  return timelinePage(eventList, polled, {
    title: 'Events',
    after,
    name: 'events',
    tools: [
      choicesInAddress('kind', 'Kind', kinds, kind),
      choicesInAddress('period', 'Period', periods, period),
    ],
  });
}
