import { createRequire } from 'node:module';
import { pino } from 'pino';
import type * as PinoPretty from 'pino-pretty';
import { printableJson } from '../shared/terminal/printable.ts';
import type { Terminal } from '../shared/terminal/terminal.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { requestLine } from './request-line.ts';

const require = createRequire(import.meta.url);

/**
 * Creates the log for a person at a terminal. Similar requests that follow each other closely share one line, which shows their number. A
 * client that repeats a request therefore does not push earlier lines off the screen. Each failure of the gateway or an upstream has its
 * own line.
 */
export function createTerminalLog(
  { columns, colours, rewrites }: Terminal,
  bounds: Pick<Bounds, 'sameRequestMs'>,
  output: pino.DestinationStream = openStandardOutput(),
) {
  // pino-pretty is loaded only for a terminal.
  const { prettyFactory } = require('pino-pretty') as typeof PinoPretty;
  const pretty = prettyFactory({
    colorize: colours,
    translateTime: 'SYS:HH:MM:ss.l',
    hideObject: true,
    messageFormat: (entry) => withDetails(entry),
  });
  let last: { readonly request: string; times: number; atMs: number } | undefined;

  return {
    /** Receives entries of the log as JSON. */
    stream: {
      write(line: string) {
        last = undefined;
        output.write(pretty(printableEntry(line)));
      },
    },
    access(line: string) {
      const entry = printableEntry(line);
      const request = sameness(entry);
      const atMs = Date.parse(entry.time);
      const repeats =
        rewrites &&
        last?.request === request &&
        entry.status < 500 &&
        atMs - last.atMs < bounds.sameRequestMs;
      const times = repeats && last !== undefined ? last.times + 1 : 1;
      last = { request, times, atMs };
      const shown = requestLine(entry, { columns: columns(), colours, times });
      output.write(`${times > 1 ? previousLine : ''}${shown}\n`);
    },
  };
}

/** When the terminal is closed, lines are lost and requests continue. */
function openStandardOutput(): pino.DestinationStream {
  return pino.destination({ dest: 1, sync: true }).on('error', () => {});
}

/** Removes control characters, because causes and paths come from outside and must not control the terminal. */
// biome-ignore lint/suspicious/noExplicitAny: an entry has whatever was logged
function printableEntry(line: string): any {
  return printableJson(JSON.parse(line));
}

/** The control sequence that moves the cursor to the line above and clears this line. */
const previousLine = '\u001b[1A\u001b[2K';

/** Returns a text that is equal for requests that share a line. */
function sameness({
  status,
  method,
  path,
  error,
  keyStatus,
  keyId,
  address,
}: Record<string, unknown>): string {
  return JSON.stringify([status, method, path, error, keyStatus, keyId, address]);
}

function withDetails({ level: _level, time: _time, msg, ...details }: Record<string, unknown>): string {
  const shown = Object.entries(details).map(([name, value]) => `${name} ${detail(value)}`);
  return [msg, shown.join(', ')].filter((part) => part !== '').join(': ');
}

/** A socket is shown by its address and port. Lists and texts are shown without quotes. */
function detail(value: unknown): string {
  if (Array.isArray(value)) return value.map(detail).join(' ');
  if (typeof value === 'string') return value;
  const { address, port } = Object(value);
  return address === undefined || port === undefined ? JSON.stringify(value) : `${address}:${port}`;
}
