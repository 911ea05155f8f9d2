export interface RequestLineOptions {
  /** The longest line. */
  readonly columns: number;
  readonly colours: boolean;
  /** The number of similar requests that the line represents. */
  readonly times: number;
}

type Entry = Readonly<Record<string, unknown>>;

/**
 * Formats an access line for a person, for example `[10:02:17.123] 200 GET /v1/pets  acme (free)  minute 59/60 left 2.8 ms  6f1f2f3a`. If a
 * line does not fit the terminal's width, its least important parts are omitted.
 */
export function requestLine(entry: Entry, { columns, colours, times }: RequestLineOptions): string {
  const time = `[${localTime(String(entry.time))}]`;
  const status = String(entry.status);
  const text = narrowed(partsOf(entry, times), columns - time.length - status.length - 2);
  return `${time} ${colours ? coloured(status) : status} ${text}`;
}

interface Parts {
  readonly method: string;
  readonly path: string;
  readonly error: string;
  readonly caller: string;
  readonly plan: string;
  readonly limit: string;
  /** The text after `59/60`, for example ` left`. */
  readonly left: string;
  readonly duration: string;
  readonly upstream: string;
  /** The id of a single request, or the number of similar requests (`×60`). */
  readonly end: string;
}

function partsOf(entry: Entry, times: number): Parts {
  const { method, path, error, keyId, keyStatus, plan, address, source, window, limit, remaining } = entry;
  return {
    method: text(method),
    path: text(path),
    error: keyStatus === undefined ? text(error) : `${error} (${keyStatus})`,
    caller: text(keyId ?? address),
    plan: plan === undefined ? '' : ` (${plan})`,
    limit: window === undefined ? '' : `${window} ${remaining}/${limit}`,
    left: window === undefined ? '' : ` left${source === 'local' ? ' (Redis away)' : ''}`,
    duration: `${Number(entry.totalMs).toFixed(1)} ms`,
    upstream:
      entry.target === undefined ? '' : ` (${Number(entry.upstreamMs).toFixed(1)} at ${entry.target})`,
    end: times > 1 ? `×${times}` : text(entry.requestId),
  };
}

const idShown = 8;
const partShown = 16;

/** Omits one part after the other until the line is short enough. The number of requests is never omitted. */
function narrowed(parts: Parts, columns: number): string {
  const withoutUpstream = { ...parts, end: parts.end.slice(0, idShown), upstream: '' };
  const withoutPlan = { ...withoutUpstream, plan: '' };
  const withoutId = { ...withoutPlan, end: parts.end.startsWith('×') ? parts.end : '' };
  const withoutDuration = { ...withoutId, duration: '' };
  const withoutLeft = { ...withoutDuration, left: '' };
  const all = [parts, { ...withoutUpstream, upstream: parts.upstream }, withoutUpstream, withoutPlan];
  const found = [...all, withoutId, withoutDuration, withoutLeft]
    .map(join)
    .find(({ length }) => length <= columns);
  if (found !== undefined) return found;
  const rest = withoutLeft;
  const path = shorten(rest.path, columns - (join(rest).length - rest.path.length));
  const caller = shorten(rest.caller, columns - (join({ ...rest, path }).length - rest.caller.length));
  return join({ ...rest, path, caller }).slice(0, columns);
}

function join({ method, path, error, caller, plan, limit, left, duration, upstream, end }: Parts): string {
  const request = [method, path, error].filter((part) => part !== '').join(' ');
  return [request, caller + plan, limit + left, duration + upstream, end]
    .filter((part) => part !== '')
    .join('  ');
}

/** Puts `…` between the beginning and the end of a text of more than 16 characters. */
function shorten(text: string, length: number): string {
  const kept = Math.max(length, partShown);
  if (text.length <= kept) return text;
  const atEnd = Math.floor((kept - 1) / 2);
  return `${text.slice(0, kept - 1 - atEnd)}…${text.slice(-atEnd)}`;
}

const colourOf: Readonly<Record<string, number>> = { 1: 36, 2: 32, 3: 36, 4: 33, 5: 31 };

/** Colours a status: green for 2xx, cyan for 1xx and 3xx, yellow for 4xx, red for 5xx. */
function coloured(status: string): string {
  return `\u001b[${colourOf[status.charAt(0)] ?? 39}m${status}\u001b[39m`;
}

function localTime(iso: string): string {
  const time = new Date(iso);
  const seconds = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => pad(part, 2));
  return `${seconds.join(':')}.${pad(time.getMilliseconds(), 3)}`;
}

function pad(number: number, digits: number): string {
  return String(number).padStart(digits, '0');
}

function text(value: unknown): string {
  return value === undefined ? '' : String(value);
}
