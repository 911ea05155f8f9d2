import { type DestinationStream, type Logger, pino } from 'pino';
import { PinoPretty } from 'pino-pretty';
import { readableLine } from './readable-line.ts';

/** How much is collected before a write, bytes: 65,536 was measured slower, single lines cost a system call each. */
const bufferBytes = 4_096;
/** The longest a line waits in that buffer, so that a quiet gateway shows its lines too. */
const flushIntervalMs = 1_000;

export interface Log {
  readonly logger: Logger;
  /** Writes what is buffered; before the process ends. */
  flush(): void;
}

/**
 * The process's log on standard output: JSON lines, or one readable line each when a terminal reads it.
 * Nothing is redacted here, because no secret and no header is ever handed to it.
 */
export function createLog({ pretty }: { readonly pretty: boolean }): Log {
  if (pretty) {
    const stream: DestinationStream = PinoPretty({
      translateTime: 'SYS:HH:MM:ss.l',
      hideObject: true,
      messageFormat: (entry) => readableLine(entry),
      sync: true,
    });
    return { logger: pino({ base: null }, stream), flush: () => {} };
  }
  const destination = pino.destination({
    dest: 1,
    sync: false,
    minLength: bufferBytes,
    periodicFlush: flushIntervalMs,
  });
  return {
    logger: pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination),
    flush: () => destination.flushSync(),
  };
}
