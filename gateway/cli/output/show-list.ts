import { listCsv } from '../../admin/words/csv.js';
import type { Asked, List } from '../../admin/words/list.js';
import type { Reply } from '../admin/admin-client.ts';
import type { Asking } from '../command.ts';
import { listLines, sayAt } from './list.ts';
import { show } from './show.ts';

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
      ? listCsv(list, page, sayAt(nowMs))
      : [...(title ? [title(page)] : []), ...listLines(list, page, asked, screen, nowMs), ...more(page)],
  );
}
