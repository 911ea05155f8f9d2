import { pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { printableJson } from '../shared/terminal/printable.ts';
import type { Terminal } from '../shared/terminal/terminal.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { requestLine } from './request-line.ts';

/**
 * The log for a person. Similar requests that follow each other closely share one line with their number, so that a loop of requests
 * does not scroll away earlier lines. Failures of the gateway or an upstream have a line each.
 */
export function createTerminalLog(
  { columns, colours, rewrites }: Terminal,
  bounds: Pick<Bounds, 'sameRequestMs'>,
  output: pino.DestinationStream = openStandardOutput(),
) {
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

/** An entry of the log. Causes and paths are foreign text, which must not control the terminal. */
// biome-ignore lint/suspicious/noExplicitAny: an entry has whatever was logged
function printableEntry(line: string): any {
  return printableJson(JSON.parse(line));
}

/** Moves to the line above and clears it. */
const previousLine = '\u001b[1A\u001b[2K';

/** Equal for requests that share a line. */
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

/** The address and port of a socket. Lists and texts without quotes. */
function detail(value: unknown): string {
  if (Array.isArray(value)) return value.map(detail).join(' ');
  if (typeof value === 'string') return value;
  const { address, port } = Object(value);
  return address === undefined || port === undefined ? JSON.stringify(value) : `${address}:${port}`;
}
