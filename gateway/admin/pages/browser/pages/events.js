import { counted, duration } from '../../../../shared/words/figures.js';
import { nowMs, usePolled } from '../api.js';
import { clock } from '../formats.js';
import { choicesInAddress, html, newestFirst, textWithKey, timedRow } from '../parts.js';
import { chosenPeriod } from '../periods.js';

/** @import { BodyOf } from '../../../wires/api-types.ts' */
/** @import { PageProps } from '../live.js' */

const perPage = 50;
const minuteMs = 60_000;

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
  return newestFirst(polled, polled.body?.events ?? [], {
    title: 'Events',
    after,
    name: 'events',
    tools: [
      choicesInAddress('kind', 'Kind', kinds, kind),
      choicesInAddress('period', 'Period', texts, period),
    ],
    row: eventRow,
    empty: 'No such events in this period.',
  });
}

/** @param {BodyOf<'/events'>['events'][number]} event */
function eventRow(event) {
  const { at, beganAt, group, kind, text, key, processes } = event;
  const atMs = Date.parse(at);
  const beganMs = beganAt && Date.parse(beganAt);
  const seen = processes > 1 && `seen by ${counted(processes, 'process', 'processes')}`;
  const lasted =
    beganMs && `from ${clock(beganMs, nowMs())} to ${clock(atMs, nowMs())}, ${duration(atMs - beganMs)}`;
  const isOpen = group === 'incident' && beganAt === undefined && kind !== 'worker_ended';
  return timedRow(
    event,
    html`<span class=${isOpen || kind === 'reload_failed' ? 'near' : ''}>${textWithKey(text, key)}</span>
      <span class="muted members">${[lasted, seen].filter(Boolean).join(' · ')}</span>`,
  );
}
