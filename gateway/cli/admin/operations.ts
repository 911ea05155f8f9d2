import { listCallersWire, listDeprecatedWire, listOperationsWire } from '../../admin/wires/operations.ts';
import { callerList } from '../../admin/words/callers.js';
import {
  deprecatedList,
  estimatedText,
  leftOut,
  operationList,
  recordBegins,
  wholeHoursText,
  withoutKeyText,
} from '../../admin/words/operations.js';
import { oneLine } from '../../shared/terminal/text-width.ts';
import { figure } from '../../shared/words/figures.js';
import type { Asking, PeriodOptions } from '../command.ts';
import { showList } from '../output/show-list.ts';
import { periodQuery } from './period.ts';
import { clientAfterFlush } from './read/flush-counts.ts';

export interface OperationsOptions extends Asking, PeriodOptions {
  readonly csv?: true;
  readonly deprecated?: true;
}

export interface CallersOptions extends Asking, PeriodOptions {
  readonly limit: number;
  readonly csv?: true;
}

/** The maximum number of callers in one response: of one operation, and of each deprecated operation. */
const callersMax = 10_000;
const deprecatedCallersMax = 1_000;

/** Prints the operations with their requests and times, or the deprecated operations with their callers. */
export async function listOperations({ from, to, deprecated, ...options }: OperationsOptions): Promise<void> {
  const query = periodQuery({ from, to }, Date.now());
  const client = await clientAfterFlush(options);
  if (deprecated) {
    const reply = await client.ask(listDeprecatedWire, { query: { ...query, limit: deprecatedCallersMax } });
    return showList(options, reply, deprecatedList, {
      asked: { filter: {} },
      title: (page) => titleOf('Deprecated operations', page),
      more: (page) => [...recordBegins(page), ...(options.csv ? [] : [withoutKeyText]), ...leftOut(page)],
    });
  }
  const reply = await client.ask(listOperationsWire, { query });
  showList(options, reply, operationList, {
    asked: { filter: {} },
    title: (page) => titleOf('Operations', page),
    more: (page) => [...recordBegins(page), ...(options.csv ? [] : [estimatedText])],
  });
}

/** Prints the callers of one operation. */
export async function listCallers(
  operationId: string,
  { from, to, limit, csv, ...options }: CallersOptions,
): Promise<void> {
  const query = { ...periodQuery({ from, to }, Date.now()), limit: csv ? callersMax : limit };
  const client = await clientAfterFlush(options);
  const reply = await client.ask(listCallersWire, { params: { operationId }, query });
  showList({ ...options, ...(csv && { csv }) }, reply, callerList, {
    asked: { filter: {} },
    title: (page) => titleOf(oneLine(page.operationId), page),
    more: (page) => [
      ...recordBegins(page),
      ...(csv ? [] : [withoutKeyText]),
      ...(page.more === undefined ? [] : [`and ${figure(page.more)} more: --limit N shows up to 10,000`]),
    ],
  });
}

/** Whole hours are counted, so the title names the hours that contain the two ends of the period. */
function titleOf(what: string, { fromAt, toAt }: { readonly fromAt: string; readonly toAt: string }): string {
  return `${what}, ${wholeHoursText({ fromAt, toAt }, Date.now())}`;
}
