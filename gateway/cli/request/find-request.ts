import type { Readable } from 'node:stream';
import { printableJson } from '../../shared/terminal/printable.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { counted } from '../../shared/words/figures.js';
import { CommandError } from '../output/command-error.ts';
import { instant } from '../output/figures.ts';
import { type LogEntry, linesOf, parseEntry } from './log-lines.ts';
import { requestStory } from './request-story.ts';

/** Matches the first eight or more characters of a request id, because the log at a terminal prints only eight. */
const beginning = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i;

/**
 * Finds a request in the gateway's log, and describes it in sentences.
 *
 * @throws a CommandError when the log has no such request or cannot be read
 */
export async function whyRequest(
  { requestId, ...search }: Search,
  bounds: Bounds,
): Promise<{ readonly entry: LogEntry; readonly story: string }> {
  if (!beginning.test(requestId)) {
    throw new CommandError(
      'The id of a request is the X-Request-Id of its response, such as 6f1f2f3a-0f4e-4c57-9d2a-5e2f1c9b7a10; its first eight characters suffice.',
    );
  }
  const { entry, events, read } = await findRequest(
    { requestId: requestId.toLowerCase(), ...search },
    bounds,
  );
  if (entry === undefined) throw new CommandError(notFound(requestId, read));
  // The log contains texts from clients, so control characters are escaped.
  const story = requestStory(printableJson(entry) as LogEntry, printableJson(events) as LogEntry[]);
  return { entry, story };
}

function notFound(requestId: string, { lines, entries, fromAt, toAt }: LinesRead): string {
  const read = `${counted(lines, 'line was', 'lines were')} read`;
  if (fromAt === undefined || toAt === undefined) {
    return `No request ${requestId}: ${read}, but none is a line of a gateway's JSON log. A gateway writes this log to standard output.`;
  }
  const others =
    lines === entries
      ? ''
      : ` (${counted(lines - entries, 'of them is', 'of them are')} not from a JSON log)`;
  return `No request ${requestId}: ${read}${others}, from ${instant(fromAt)} to ${instant(toAt)} UTC. Is the request of another time, or of another gateway?`;
}

export interface Search {
  /** The whole id, or at least its first eight characters, in lower case. */
  readonly requestId: string;
  /** File names. `-` means standard input. */
  readonly files: readonly string[];
  readonly stdin: Readable;
}

/** The number of lines read, the number of log entries among them, and the earliest and latest timestamps of these entries (ISO 8601). */
interface LinesRead {
  lines: number;
  entries: number;
  fromAt?: string;
  toAt?: string;
}

/**
 * Searches the gateway's log for the access line of a request. The files are streamed. Compressed files are recognised by their
 * content.
 *
 * @returns the line, and earlier entries about the request
 * @throws a CommandError when a file cannot be read
 */
export async function findRequest(
  { requestId, files, stdin }: Search,
  bounds: Bounds,
): Promise<{
  readonly entry: LogEntry | undefined;
  readonly events: readonly LogEntry[];
  readonly read: LinesRead;
}> {
  const member = Buffer.from(`"requestId":"${requestId}`);
  const events: LogEntry[] = [];
  const read: LinesRead = { lines: 0, entries: 0 };
  for (const file of files) {
    for await (const line of linesOf(file, stdin, bounds)) {
      read.lines += 1;
      const at = timeOf(line);
      if (at === undefined) continue;
      read.entries += 1;
      if (read.fromAt === undefined || at < read.fromAt) read.fromAt = at;
      if (read.toAt === undefined || at > read.toAt) read.toAt = at;
      const entry = line.includes(member) ? parseEntry(line) : undefined;
      if (!String(entry?.requestId).startsWith(requestId)) continue;
      if (entry?.status !== undefined && entry.msg === undefined) return { entry, events, read };
      if (entry !== undefined) events.push(entry);
    }
  }
  return { entry: undefined, events, read };
}

const timeMember = Buffer.from('"time":"');
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Reads the timestamp of a log entry without parsing the whole line. */
function timeOf(line: Buffer): string | undefined {
  const at = line.indexOf(timeMember);
  if (at === -1) return undefined;
  const time = line.toString('latin1', at + timeMember.length, at + timeMember.length + 24);
  return isoTime.test(time) ? time : undefined;
}
