import { fstatSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Terminal } from '../shared/terminal/terminal.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createTerminalLog } from './terminal-log.ts';

export interface Log {
  readonly logger: Logger;
  /** Writes the line of a finished request: a JSON object and a line break. */
  access(line: string): void;
  /** Writes the buffer before the process ends. Gives up after `logCloseTimeoutMs` if standard output is not read. */
  close(): Promise<void>;
}

export interface LogOptions {
  /** Set when a person reads the log at a terminal. */
  readonly terminal?: Terminal | undefined;
  /** Set in a gateway of several processes, which share standard output. */
  readonly sharedBy?: { readonly worker?: number } | undefined;
  readonly bounds: Bounds;
}

/**
 * The log of the process on standard output: JSON lines, or readable lines for a person. It needs no redaction, because it never
 * receives secrets or headers.
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
    // Not through pino, which serialises field by field. For these flat lines that took a quarter of a request's CPU.
    access,
    close,
  };
}

function openTerminal(terminal: Terminal, bounds: Bounds): Output {
  return { ...createTerminalLog(terminal, bounds), close: () => Promise.resolve() };
}

/**
 * Lines are collected here instead of in pino's stream, which measures its whole buffer again for every line.
 *
 * If several processes write into a pipe, a long write may be torn by a write of another process. Writes of up to PIPE_BUF octets
 * stay whole (pipe(7)). Files keep every write whole.
 */
function openFile(bounds: Bounds, { isShared }: { readonly isShared: boolean }): Output {
  const isWhole = isShared && !fstatSync(1).isFile();
  const file = pino.destination({
    dest: 1,
    sync: false,
    maxLength: bounds.logUnreadBytesMax,
    // Otherwise `flush` calls back before it has written.
    minLength: 1,
    maxWrite: isWhole ? bounds.logSharedBytesMax : undefined,
  });
  // A full disk or a closed pipe loses lines, and requests continue.
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
 * Flushes and destroys the stream. Not with flushSync, which never returns if the pipe is not read or the disk is full. pino would
 * call it at the exit of the process for a stream that is not destroyed.
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
