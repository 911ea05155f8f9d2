import type { Readable } from 'node:stream';
import { type LogBounds, type LogEntry, linesOf, parseEntry } from './log-lines.ts';

export interface Search {
  /** Whole, or its first eight characters or more, in lower case. */
  readonly requestId: string;
  /** Names of files; `-` is standard input. */
  readonly files: readonly string[];
  readonly stdin: Readable;
}

export type Found =
  | {
      readonly kind: 'found';
      /** The access line. */
      readonly entry: LogEntry;
      /** Earlier entries of the log about the request. */
      readonly events: readonly LogEntry[];
    }
  | { readonly kind: 'not_found'; readonly read: LinesRead };

/** The part of the log that was read. */
export interface LinesRead {
  readonly lines: number;
  /** The number of lines that are entries of the gateway's log. */
  readonly entries: number;
  /** The earliest and the latest instant of an entry, ISO 8601. */
  readonly fromAt?: string;
  readonly toAt?: string;
}

/**
 * Looks for the access line of a request in the gateway's log. It streams the files, also compressed files, which it recognises by
 * their content.
 *
 * @throws a CommandError when a file cannot be read
 */
export async function findRequest({ requestId, files, stdin }: Search, bounds: LogBounds): Promise<Found> {
  const member = Buffer.from(`"requestId":"${requestId}`);
  const events: LogEntry[] = [];
  const read: { lines: number; entries: number; fromAt?: string; toAt?: string } = { lines: 0, entries: 0 };
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
      if (entry?.status !== undefined && entry.msg === undefined) return { kind: 'found', entry, events };
      if (entry !== undefined) events.push(entry);
    }
  }
  return { kind: 'not_found', read };
}

const timeMember = Buffer.from('"time":"');
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Reads the instant of an entry without parsing the whole line. */
function timeOf(line: Buffer): string | undefined {
  const at = line.indexOf(timeMember);
  if (at === -1) return undefined;
  const time = line.toString('latin1', at + timeMember.length, at + timeMember.length + 24);
  return isoTime.test(time) ? time : undefined;
}
