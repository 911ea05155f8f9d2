import { fstatSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Terminal } from '../shared/terminal/terminal.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { logSerializers } from './logged-error.ts';
import { createTerminalLog } from './terminal-log.ts';

export interface Log {
  readonly logger: Logger;
  /** Writes the line of a finished request: a JSON object and a line break. */
  access(line: string): void;
  /** Writes the buffered lines before the process exits. Gives up after `logCloseTimeoutMs` if no process reads standard output. */
  close(): Promise<void>;
}

export interface LogOptions {
  /** Present if a person reads the log. */
  readonly terminal?: Terminal | undefined;
  /** Set if several processes of a gateway share standard output. */
  readonly sharedBy?: { readonly worker?: number } | undefined;
  readonly bounds: Bounds;
}

/**
 * Creates the log of the process on standard output, as JSON lines or as readable lines for a person. The log needs
 * no redaction, because it never receives secrets or header fields. Errors are logged without most of their members (`logSerializers`).
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
        serializers: logSerializers,
      },
      stream,
    ),
    // Access lines bypass pino, which serialises field by field. With pino, these lines took a quarter of a request's
    // CPU time.
    access,
    close,
  };
}

function openTerminal(terminal: Terminal, bounds: Bounds): Output {
  return { ...createTerminalLog(terminal, bounds), close: () => Promise.resolve() };
}

/**
 * Opens standard output as a file. Lines are buffered here instead of in pino's stream, which measures its whole
 * buffer for every line.
 *
 * If several processes write to one pipe, the kernel may split a long write, so that the output of two processes is
 * mixed. Writes of up to PIPE_BUF octets are never split (pipe(7)). Writes to a file are never split.
 */
function openFile(bounds: Bounds, { isShared }: { readonly isShared: boolean }): Output {
  const isWhole = isShared && !fstatSync(1).isFile();
  const file = pino.destination({
    dest: 1,
    sync: false,
    maxLength: bounds.logUnreadBytesMax,
    // With the default `minLength`, `flush` calls its callback before it has written.
    minLength: 1,
    maxWrite: isWhole ? bounds.logSharedBytesMax : undefined,
  });
  // If the disk is full or the pipe is closed, lines are lost and requests continue.
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
 * Flushes and destroys the stream without `flushSync`. `flushSync` never returns if the pipe is not read or the disk is
 * full. If the stream were not destroyed, pino would call `flushSync` at the exit of the process.
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
