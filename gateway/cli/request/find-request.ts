import type { Readable } from 'node:stream';
import {
  countLine,
  isAccessLine,
  type LinesRead,
  type LogEntry,
  notFoundText,
  parseEntry,
  requestIdStart,
  requestStory,
} from '../../admin/words/request-story.js';
import { printableJson } from '../../shared/terminal/printable.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { CommandError } from '../output/command-error.ts';
import { linesOf } from './log-lines.ts';

/**
 * Finds a request in the gateway's log, and describes it in sentences.
 *
 * @throws a CommandError when the log has no such request or cannot be read
 */
export async function whyRequest(
  { requestId, ...search }: Search,
  bounds: Bounds,
): Promise<{ readonly entry: LogEntry; readonly story: string }> {
  if (!requestIdStart.test(requestId)) {
    throw new CommandError(
      'The id of a request is the X-Request-Id of its response, such as 6f1f2f3a-0f4e-4c57-9d2a-5e2f1c9b7a10; its first eight characters suffice.',
    );
  }
  const { entry, events, read } = await findRequest(
    { requestId: requestId.toLowerCase(), ...search },
    bounds,
  );
  if (entry === undefined) throw new CommandError(notFoundText(requestId, read));
  // The log contains texts from clients, so control characters are escaped.
  const story = requestStory(printableJson(entry) as LogEntry, printableJson(events) as LogEntry[]);
  return { entry, story };
}

export interface Search {
  /** The whole id, or at least its first eight characters, in lower case. */
  readonly requestId: string;
  /** File names. `-` means standard input. */
  readonly files: readonly string[];
  readonly stdin: Readable;
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
      const at = timeOf(line);
      countLine(read, at);
      if (at === undefined || !line.includes(member)) continue;
      const entry = parseEntry(line.toString('utf8'));
      if (entry === undefined || !String(entry.requestId).startsWith(requestId)) continue;
      if (isAccessLine(entry)) return { entry, events, read };
      events.push(entry);
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
