import { type DestinationStream, type Logger, pino } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { readableLine } from './readable-line.ts';

export interface Log {
  readonly logger: Logger;
  /** Writes the line of a finished request: a JSON object with the line break behind it. */
  access(line: string): void;
  /** Writes what is buffered, before the process ends. Gives up after `logCloseTimeoutMs` when nobody reads. */
  close(): Promise<void>;
}

export interface LogOptions {
  /** Whether a person reads it at a terminal. */
  readonly pretty: boolean;
  readonly bounds: LogBounds;
}

type LogBounds = Pick<
  Bounds,
  'logLinesLengthMax' | 'logFlushIntervalMs' | 'logUnreadBytesMax' | 'logCloseTimeoutMs'
>;

/**
 * The process's log on standard output: JSON lines, or readable lines for a person. Nothing is redacted here, because no
 * secret and no header is ever given to it.
 */
export function createLog({ pretty, bounds }: LogOptions): Log {
  const { stream, close } = pretty ? openTerminal() : openFile(bounds);
  return {
    logger: pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream),
    // Not through pino, which serialises field by field: for these flat lines that took a quarter of a request's CPU.
    access: (line) => stream.write(line),
    close,
  };
}

function openTerminal(): Output {
  const stream: DestinationStream = PinoPretty({
    translateTime: 'SYS:HH:MM:ss.l',
    hideObject: true,
    messageFormat: (entry) => readableLine(entry),
    sync: true,
  });
  return { stream, close: () => Promise.resolve() };
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

  return {
    stream: {
      write(line) {
        lines += line;
        if (lines.length >= bounds.logLinesLengthMax) write();
      },
    },
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
  readonly close: () => Promise<void>;
}
