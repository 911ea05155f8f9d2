import { listChangesWire } from '../../admin/wires/changes.ts';
import { listEventsWire } from '../../admin/wires/events.ts';
import { changeList, withKey } from '../../admin/words/changes.js';
import { timelineCsv } from '../../admin/words/csv.js';
import { eventList } from '../../admin/words/events.js';
import type { Timeline } from '../../admin/words/list.js';
import { printable, printableJsonText } from '../../shared/terminal/printable.ts';
import type { Asking, PeriodOptions } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { screenNow, show } from '../output/show.ts';
import { timelineLines } from '../output/time-list.ts';
import type { Reply } from './admin-client.ts';
import { clientOf } from './find-gateway.ts';
import { periodQuery } from './period.ts';
import { type FollowedChanges, followChanges } from './read/follow-changes.ts';
import { readList } from './read/read-list.ts';

interface TimelineOptions extends Asking {
  readonly limit: number;
  readonly csv?: true;
}

export interface ChangesOptions extends TimelineOptions, PeriodOptions {
  readonly key?: string;
  readonly by?: string;
  readonly follow?: true;
  /** The id of a change. */
  readonly after?: string | undefined;
}

export interface EventsOptions extends TimelineOptions, PeriodOptions {
  readonly kind?: string;
}

const perPage = 200;

export async function listEvents({ from, to, kind, limit, ...options }: EventsOptions): Promise<void> {
  const query = { ...periodQuery({ from, to }, Date.now()), kind };
  const client = await clientOf(options);
  const page = { wire: listEventsWire(client.bounds), member: 'events', perPage };
  showTimeline(options, await readList(client, page, query, limit), eventList);
}

export async function listChanges({
  limit,
  follow: isFollowing,
  after,
  key,
  by,
  from,
  to,
  ...options
}: ChangesOptions): Promise<void> {
  if (after !== undefined && !isFollowing) throw new CommandError('--after needs --follow.');
  if (after !== undefined && !/^\d{1,15}-\d{1,15}$/.test(after)) {
    throw new CommandError('--after must be the id of a change, such as 1795600000000-0.');
  }
  if (isFollowing) return follow({ limit, after, ...options });
  const query = { ...periodQuery({ from, to }, Date.now()), key, by };
  const client = await clientOf(options);
  const page = { wire: listChangesWire(client.bounds), member: 'changes', perPage };
  const { body, ...reply } = await readList(client, page, query, limit);
  showTimeline(options, { ...reply, body: options.csv ? withKey(body, key) : body }, changeList);
}

/** Runs until a signal or a closed pipe ends the command. */
async function follow({ limit, after, json, ...options }: ChangesOptions): Promise<void> {
  const client = await clientOf(options);
  const write = (lines: readonly string[]) =>
    new Promise<void>((resolve) => process.stdout.write(`${lines.join('\n')}\n`, () => resolve()));
  let isFirst = true;
  const print = ({ changes, jsonChanges }: FollowedChanges) => {
    if (json) return write(jsonChanges.map((change) => printableJsonText(change, 0)));
    const lines = timelineLines(changeList, { isComplete: true, changes }, screenNow(), Date.now());
    const [titles = '', ...rest] = lines;
    const shown = isFirst ? [titles, ...rest] : rest;
    isFirst = false;
    return write(shown);
  };
  const end = () => process.exit();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);
  const tell = (line: string) => process.stderr.write(`${printable(line)}\n`);
  await followChanges(client, { limit, after }, { print, tell });
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
