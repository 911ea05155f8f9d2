import { listChangesWire } from '../../admin/wires/changes.ts';
import { listEventsWire } from '../../admin/wires/events.ts';
import { changeList } from '../../admin/words/changes.js';
import { eventList } from '../../admin/words/events.js';
import type { Timeline } from '../../admin/words/list.js';
import type { Asking, PeriodOptions } from '../command.ts';
import { show } from '../output/show.ts';
import { timelineCsv, timelineLines } from '../output/time-list.ts';
import type { Reply } from './admin-client.ts';
import { clientOf } from './find-gateway.ts';
import { periodQuery } from './period.ts';
import { readList } from './read/read-list.ts';

export interface ChangesOptions extends Asking {
  readonly limit: number;
  readonly csv?: true;
}

export interface EventsOptions extends ChangesOptions, PeriodOptions {
  readonly kind?: string;
}

const perPage = 200;

export async function listEvents({ from, to, kind, limit, ...options }: EventsOptions): Promise<void> {
  const query = { ...periodQuery({ from, to }, Date.now()), kind };
  const client = await clientOf(options);
  const page = { wire: listEventsWire(client.bounds), member: 'events', perPage };
  showTimeline(options, await readList(client, page, query, limit), eventList);
}

export async function listChanges({ limit, ...options }: ChangesOptions): Promise<void> {
  const client = await clientOf(options);
  const page = { wire: listChangesWire(client.bounds), member: 'changes', perPage };
  showTimeline(options, await readList(client, page, {}, limit), changeList);
}

function showTimeline<Page extends { readonly isComplete: boolean }, Item>(
  { csv, ...options }: Pick<Asking, 'json'> & { readonly csv?: true },
  reply: Reply<Page>,
  timeline: Timeline<Page, Item>,
): void {
  show(options, reply, (page, screen, nowMs) =>
    csv ? timelineCsv(timeline, page) : timelineLines(timeline, page, screen, nowMs),
  );
}
