import { fstatSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Terminal } from '../shared/terminal/terminal.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createTerminalLog } from './terminal-log.ts';

export interface Log {
  readonly logger: Logger;
  /** Writes the line of a finished request: a JSON object with the line break behind it. */
  access(line: string): void;
  /** Writes what is buffered, before the process ends. Gives up after `logCloseTimeoutMs` when nobody reads. */
  close(): Promise<void>;
}

export interface LogOptions {
  /** Set when a person reads it. */
  readonly terminal?: Terminal | undefined;
  /** Set in a gateway of several processes, which all write to the same standard output. */
  readonly sharedBy?: { readonly worker?: number } | undefined;
  readonly bounds: LogBounds;
}

type LogBounds = Pick<
  Bounds,
  | 'logLinesLengthMax'
  | 'logSharedBytesMax'
  | 'logFlushIntervalMs'
  | 'logUnreadBytesMax'
  | 'logCloseTimeoutMs'
  | 'sameRequestMs'
>;

/**
 * The process's log on standard output: JSON lines, or readable lines for a person. Nothing is redacted here, because no
 * secret and no header is ever given to it.
 */
export function createLog({ terminal, sharedBy, bounds }: LogOptions): Log {
  const { stream, access, close } =
    terminal === undefined
      ? openFile(bounds, { isShared: sharedBy !== undefined })
      : openTerminal({ ...terminal, rewrites: terminal.rewrites && sharedBy === undefined }, bounds);
  return {
    logger: pino(
      {
        base: sharedBy?.worker === undefined ? null : { worker: sharedBy.worker },
        timestamp: pino.stdTimeFunctions.isoTime,
      },
      stream,
    ),
    // Not through pino, which serialises field by field: for these flat lines that took a quarter of a request's CPU.
    access,
    close,
  };
}

function openTerminal(terminal: Terminal, bounds: LogBounds): Output {
  return { ...createTerminalLog(terminal, bounds), close: () => Promise.resolve() };
}

/**
 * Lines are collected here and not in pino's stream, which measures everything it has collected again for every line.
 *
 * A pipe into which several processes write may take a part of a longer write, and then what another one writes: lines would
 * be torn. Shorter ones it takes whole (pipe(7), PIPE_BUF). Files take every write whole.
 */
function openFile(bounds: LogBounds, { isShared }: { readonly isShared: boolean }): Output {
  const isWhole = isShared && !fstatSync(1).isFile();
  const file = pino.destination({
    dest: 1,
    sync: false,
    maxLength: bounds.logUnreadBytesMax,
    // Without it `flush` calls back before anything is written.
    minLength: 1,
    ...(isWhole && { maxWrite: bounds.logSharedBytesMax }),
  });
  // With a full disk or a closed pipe lines are lost, and requests go on.
  file.on('error', () => {});
  let lines = '';
  let bytes = 0;
  const timer = setInterval(write, bounds.logFlushIntervalMs).unref();

  function write(): void {
    if (lines !== '') file.write(lines);
    lines = '';
    bytes = 0;
  }

  function collectWhole(line: string): void {
    const lineBytes = Buffer.byteLength(line);
    if (bytes + lineBytes > bounds.logSharedBytesMax) write();
    lines += line;
    bytes += lineBytes;
  }

  function collect(line: string): void {
    lines += line;
    if (lines.length >= bounds.logLinesLengthMax) write();
  }

  const add = isWhole ? collectWhole : collect;
  return {
    stream: { write: add },
    access: add,
    close() {
      clearInterval(timer);
      write();
      return closeWithin(file, bounds.logCloseTimeoutMs);
    },
  };
}

/**
 * Flushes and destroys the stream. Not with flushSync, which never returns when nobody reads the pipe or the disk is full.
 * The stream is destroyed because pino flushes every other one in that way when the process exits.
 */
async function closeWithin(stream: ReturnType<typeof pino.destination>, timeoutMs: number): Promise<void> {
  const flushed = new Promise<void>((resolve) => stream.flush(() => resolve()));
  await withinDeadline(flushed, timeoutMs, () => {});
  stream.destroy();
}

interface Output {
  readonly stream: DestinationStream;
  readonly access: (line: string) => void;
  readonly close: () => Promise<void>;
}
