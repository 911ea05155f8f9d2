import { type DestinationStream, type Logger, pino } from 'pino';
import type { Terminal } from '../terminal/terminal.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
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
  readonly bounds: LogBounds;
}

type LogBounds = Pick<
  Bounds,
  'logLinesLengthMax' | 'logFlushIntervalMs' | 'logUnreadBytesMax' | 'logCloseTimeoutMs' | 'sameRequestMs'
>;

/**
 * The process's log on standard output: JSON lines, or readable lines for a person. Nothing is redacted here, because no
 * secret and no header is ever given to it.
 */
export function createLog({ terminal, bounds }: LogOptions): Log {
  const { stream, access, close } =
    terminal === undefined ? openFile(bounds) : openTerminal(terminal, bounds);
  return {
    logger: pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream),
    // Not through pino, which serialises field by field: for these flat lines that took a quarter of a request's CPU.
    access,
    close,
  };
}

function openTerminal(terminal: Terminal, bounds: LogBounds): Output {
  return { ...createTerminalLog(terminal, bounds), close: () => Promise.resolve() };
}

/** Lines are collected here and not in pino's stream, which measures everything it has collected again for every line. */
function openFile(bounds: LogBounds): Output {
  const file = pino.destination({ dest: 1, sync: false, maxLength: bounds.logUnreadBytesMax });
  // With a full disk or a closed pipe lines are lost, and requests go on.
  file.on('error', () => {});
  let lines = '';
  const timer = setInterval(write, bounds.logFlushIntervalMs).unref();

  function write(): void {
    if (lines !== '') file.write(lines);
    lines = '';
  }

  function collect(line: string): void {
    lines += line;
    if (lines.length >= bounds.logLinesLengthMax) write();
  }

  return {
    stream: { write: collect },
    access: collect,
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
  const flushed = Promise.withResolvers<void>();
  const timer = setTimeout(flushed.resolve, timeoutMs);
  stream.flush(() => flushed.resolve());
  await flushed.promise;
  clearTimeout(timer);
  stream.destroy();
}

interface Output {
  readonly stream: DestinationStream;
  readonly access: (line: string) => void;
  readonly close: () => Promise<void>;
}
