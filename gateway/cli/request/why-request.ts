import { printableJson } from '../../shared/terminal/printable.ts';
import { CommandError } from '../output/command-error.ts';
import { counted, instant } from '../output/figures.ts';
import { findRequest, type LinesRead, type Search } from './find-request.ts';
import type { LogBounds, LogEntry } from './log-lines.ts';
import { requestStory } from './request-story.ts';

/** A whole `X-Request-Id`. */
const whole = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** The first characters of a request id, at least as many as the log prints at a terminal. */
const beginning = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i;

export function isRequestId(text: string): boolean {
  return whole.test(text);
}

/** @param error the reason why the key could not be read */
export function needsLog(id: string, error: unknown): unknown {
  if (!(error instanceof CommandError)) return error;
  const asKey =
    error.kind === 'not_found' ? '' : ` As the id of a key it could not be asked for: ${error.message}`;
  return new CommandError(
    `${id} looks like the id of a request: say with --log FILE which log of the gateway to look in, or --log - for standard input.${asKey}`,
  );
}

/**
 * Finds a request in the gateway's log, and tells its story.
 *
 * @throws a CommandError when the log has no such request or cannot be read
 */
export async function whyRequest(
  { requestId, ...search }: Search,
  bounds: LogBounds,
): Promise<{ readonly entry: LogEntry; readonly story: string }> {
  if (!beginning.test(requestId)) {
    throw new CommandError(
      'The id of a request is what its response had in X-Request-Id, such as 6f1f2f3a-0f4e-4c57-9d2a-5e2f1c9b7a10; its first eight characters will do.',
    );
  }
  const found = await findRequest({ requestId: requestId.toLowerCase(), ...search }, bounds);
  if (found.kind === 'not_found') throw new CommandError(notFound(requestId, found.read));
  const { entry, events } = found;
  // The log has texts that clients sent.
  const story = requestStory(printableJson(entry) as LogEntry, printableJson(events) as LogEntry[]);
  return { entry, story };
}

function notFound(requestId: string, { lines, entries, fromAt, toAt }: LinesRead): string {
  const read = `${counted(lines, 'line was', 'lines were')} read`;
  if (fromAt === undefined || toAt === undefined) {
    return `No request ${requestId}: ${read}, none of them of a gateway's JSON log, which it writes to standard output.`;
  }
  const others =
    lines === entries ? '' : ` (${counted(lines - entries, 'of them is', 'of them are')} no JSON log)`;
  return `No request ${requestId}: ${read}${others}, from ${instant(fromAt)} to ${instant(toAt)} UTC. Is it of another time, or of another gateway?`;
}
