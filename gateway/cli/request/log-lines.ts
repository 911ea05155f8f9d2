import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { CommandError } from '../output/command-error.ts';

/**
 * Yields the lines of a file, which may be compressed with gzip. A line that is longer than the maximum is cut at its end.
 *
 * @param file `-` is standard input
 * @throws a CommandError when it cannot be read
 */
export async function* linesOf(
  file: string,
  stdin: Readable,
  { logLineReadBytesMax: bytesMax }: Bounds,
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
    // The rest is copied, because the stream may reuse the memory of the chunk.
    kept.push(Buffer.from(rest));
    bytes += rest.length;
  }
  if (bytes > 0) yield Buffer.concat(kept);
}

const lineBreak = 0x0a;

/** The decompressed content of a file. */
async function* contentOf(file: string, stdin: Readable): AsyncGenerator<Buffer> {
  const source = file === '-' ? stdin : createReadStream(file);
  try {
    const chunks: AsyncIterator<Buffer> = source[Symbol.asyncIterator]();
    const first = await firstOctets(chunks);
    const all = Readable.from(joined(first, chunks), { objectMode: false });
    if (first[0] !== 0x1f || first[1] !== 0x8b) yield* all;
    // The callback ignores an error of the pipeline, because the reader of its output also gets the error.
    else yield* pipeline(all, createGunzip(), () => {});
  } catch (error) {
    const name = file === '-' ? 'Standard input' : file;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(`${name} cannot be read as a log (${reason}).`);
  } finally {
    source.destroy();
  }
}

/** Joins the first chunks until they have the two octets that identify gzip (RFC 1952 §2.3.1). */
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
