import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import { CommandError } from '../output/command-error.ts';

/** An entry of the gateway's log. */
export type LogEntry = Readonly<Record<string, unknown>>;

export type SearchBounds = Pick<Bounds, 'logLineReadBytesMax'>;

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
      /** What else the log says of the request, before that. */
      readonly events: readonly LogEntry[];
    }
  | { readonly kind: 'not_found'; readonly read: LinesRead };

/** How much of the log was read. */
export interface LinesRead {
  readonly lines: number;
  /** Of them, lines of the gateway's log. */
  readonly entries: number;
  /** ISO 8601: the earliest and the latest instant of an entry. */
  readonly fromAt?: string;
  readonly toAt?: string;
}

/**
 * Looks for the access line of a request in the gateway's log. Files are streamed, compressed ones too, which are known by
 * their content; of a line nothing is kept but what it takes to know whether it is the one.
 *
 * @throws a CommandError when a file cannot be read
 */
export async function findRequest({ requestId, files, stdin }: Search, bounds: SearchBounds): Promise<Found> {
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

/** The instant of an entry, without parsing all of it. */
function timeOf(line: Buffer): string | undefined {
  const at = line.indexOf(timeMember);
  if (at === -1) return undefined;
  const time = line.toString('latin1', at + timeMember.length, at + timeMember.length + 24);
  return isoTime.test(time) ? time : undefined;
}

/** Tools put a name in front of each line, as `docker compose logs` does. */
function parseEntry(line: Buffer): LogEntry | undefined {
  try {
    const entry: unknown = JSON.parse(line.toString('utf8', line.indexOf('{')));
    return typeof entry === 'object' && entry !== null ? (entry as LogEntry) : undefined;
  } catch {
    return undefined;
  }
}

/** The lines of a file; the end of one that is longer than the bound is left out. */
async function* linesOf(
  file: string,
  stdin: Readable,
  { logLineReadBytesMax: bytesMax }: SearchBounds,
): AsyncGenerator<Buffer> {
  let kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of contentOf(file, stdin)) {
    let from = 0;
    for (let end = chunk.indexOf(lineBreak); end !== -1; end = chunk.indexOf(lineBreak, from)) {
      yield kept.length === 0
        ? chunk.subarray(from, end)
        : Buffer.concat([...kept, chunk.subarray(from, end)]);
      kept = [];
      bytes = 0;
      from = end + 1;
    }
    const rest = chunk.subarray(from, from + bytesMax - bytes);
    if (rest.length === 0) continue;
    // The chunk's memory may be used again for the next one.
    kept.push(Buffer.from(rest));
    bytes += rest.length;
  }
  if (bytes > 0) yield Buffer.concat(kept);
}

const lineBreak = 0x0a;

/** What is in a file, decompressed. */
async function* contentOf(file: string, stdin: Readable): AsyncGenerator<Buffer> {
  const source = file === '-' ? stdin : createReadStream(file);
  try {
    const chunks: AsyncIterator<Buffer> = source[Symbol.asyncIterator]();
    const first = await firstOctets(chunks);
    const all = Readable.from(joined(first, chunks), { objectMode: false });
    if (first[0] !== 0x1f || first[1] !== 0x8b) yield* all;
    // Its errors arrive where its output is read.
    else yield* pipeline(all, createGunzip(), () => {});
  } catch (error) {
    const name = file === '-' ? 'Standard input' : file;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(`${name} cannot be read as a log (${reason}).`);
  } finally {
    source.destroy();
  }
}

/** The first chunks as one, with two octets at least where there are so many: by these gzip is known (RFC 1952 §2.3.1). */
async function firstOctets(chunks: AsyncIterator<Buffer>): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0);
  while (first.length < 2) {
    const { value, done } = await chunks.next();
    if (done === true) break;
    first = Buffer.concat([first, value]);
  }
  return first;
}

async function* joined(first: Buffer, chunks: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first;
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
}
