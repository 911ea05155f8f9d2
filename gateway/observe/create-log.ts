import { type DestinationStream, type Logger, pino } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { readableLine } from './readable-line.ts';

export interface Log {
  readonly logger: Logger;
  /** Writes a finished request's line: a JSON object and the end of the line. */
  access(line: string): void;
  /** Writes what is buffered, before the process ends; gives up when nobody reads. */
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
 * The process's log on standard output: JSON lines, or one readable line each when a terminal reads it.
 * Nothing is redacted here, because no secret and no header is ever handed to it.
 */
export function createLog({ pretty, bounds }: LogOptions): Log {
  const { stream, close } = pretty ? openTerminal() : openFile(bounds);
  return {
    logger: pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream),
    // Past pino's serialiser, which goes field by field: for these flat lines that cost a quarter of a request's CPU.
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

/** Lines are collected here and not by pino's stream, which measures all that it has collected with every line. */
function openFile(bounds: LogBounds): Output {
  const file = pino.destination({ dest: 1, sync: false, maxLength: bounds.logUnreadBytesMax });
  // A full disk or a closed pipe costs lines, never requests.
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
 * Not flushSync, which waits for ever when nobody reads the pipe or the disk is full; the same would befall pino's own
 * flush at the exit of the process, which passes over a destroyed stream.
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
