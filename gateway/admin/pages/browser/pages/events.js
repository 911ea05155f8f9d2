import { minuteMs } from '../../../../shared/words/figures.js';
import { eventList } from '../../../words/events.js';
import { nowMs, usePolled } from '../api.js';
import { choicesInAddress } from '../parts.js';
import { chosenPeriod } from '../periods.js';
import { timelinePage } from '../timeline.js';

/** @import { PageProps } from '../live.js' */

const perPage = 50;

const kinds = { '': 'all', incident: 'incidents', ban: 'bans', change: 'changes' };

/** Events of all processes, the newest first. @param {PageProps} props */
export function Events({ query }) {
  const after = query.get('after') ?? undefined;
  const kind = query.get('kind') ?? '';
  const { value: period, lengthMs, texts } = chosenPeriod(['7d', '24h', '1h'], query.get('period'));
  // The beginning of the period is rounded to a minute, so that the polled path stays the same for a minute.
  const fromMs = Math.floor((nowMs() - lengthMs) / minuteMs) * minuteMs;
  // The gateway keeps events for 7 days, so the list of 7 days has no beginning.
  const from = period === '' ? undefined : new Date(fromMs).toISOString();
  const polled = usePolled('/events', 4_000, { query: { limit: perPage, after, kind, from } });
  return timelinePage(eventList, polled, {
    title: 'Events',
    after,
    name: 'events',
    tools: [
      choicesInAddress('kind', 'Kind', kinds, kind),
      choicesInAddress('period', 'Period', texts, period),
    ],
  });
}
