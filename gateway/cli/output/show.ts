/** Prints responses and lists on standard output, in the form that the options of the command choose. */
import type { Asked, List, Timeline } from '../../admin/words/list.js';
import type { Reply } from '../admin/admin-client.ts';
import type { Asking } from '../command.ts';
import { listCsv, listLines } from './list.ts';
import { print, printJson, type Screen, screenOf } from './screen.ts';
import { timelineCsv, timelineLines } from './time-list.ts';

/** Prints a response: its JSON with `--json`, and otherwise the lines that `view` makes of its body. */
export function show<Body>(
  { json: asJson }: Pick<Asking, 'json'>,
  { json, body }: Reply<Body>,
  view: (body: Body, screen: Screen, nowMs: number) => readonly string[],
): void {
  if (asJson) printJson(json);
  else print(view(body, screenNow(), Date.now()));
}

/**
 * Prints a list: its JSON with `--json`, comma-separated values with `--csv`, and otherwise its table.
 *
 * @param title the line above the list @param more the lines below the table, which go to standard error with `--csv`
 */
export function showList<Page, Row>(
  { csv, ...options }: Pick<Asking, 'json'> & { readonly csv?: true },
  reply: Reply<Page>,
  list: List<Page, Row>,
  {
    asked,
    title,
    more = () => [],
  }: {
    readonly asked: Asked;
    readonly title?: (page: Page) => string;
    readonly more?: (page: Page) => readonly string[];
  },
): void {
  if (csv && !options.json) for (const line of more(reply.body)) process.stderr.write(`${line}\n`);
  show(options, reply, (page, screen, nowMs) =>
    csv
      ? listCsv(list, page, nowMs)
      : [...(title ? [title(page)] : []), ...listLines(list, page, asked, screen, nowMs), ...more(page)],
  );
}

/** Prints a list that is sorted by time, as `showList` prints other lists. */
export function showTimeline<Page extends { readonly isComplete: boolean }, Item>(
  { csv, ...options }: Pick<Asking, 'json'> & { readonly csv?: true },
  reply: Reply<Page>,
  timeline: Timeline<Page, Item>,
): void {
  show(options, reply, (page, screen, nowMs) =>
    csv ? timelineCsv(timeline, page) : timelineLines(timeline, page, screen, nowMs),
  );
}

/** Standard output, with the terminal's current width. */
export function screenNow(): Screen {
  return screenOf(process.stdout, process.env);
}
