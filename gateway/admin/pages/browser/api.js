import { useEffect, useRef, useState } from 'preact/hooks';

/** @import { BodyOf, Change, PathOf, RowOf, SentAt } from '../../wires/api-types.ts' */

/**
 * The last response of a polled path, and the last error.
 *
 * @template [Body=unknown]
 * @typedef {object} Polled
 * @property {Body | undefined} body the last received body; undefined before the first response
 * @property {number} atMs the time at which the body arrived, on the clock of the browser's machine
 * @property {number} everyMs the interval between requests
 * @property {{ readonly status: number, readonly message: string } | undefined} error the error of the last request;
 * undefined after a successful request
 */
/**
 * @template Row
 * @typedef {Map<number, Row> & { missing?: unknown, unknownUntilMs?: number | undefined }} Rows the rows of a period by their timestamps, and
 * what they lack while Redis is away. Before `unknownUntilMs`, a period without a row is not known
 */

/** Sends requests to the admin API at `/api/v1/` of the same origin, with the token of this tab. */

const tokenName = 'token';

/** Called when the API refuses the token. @type {(message: string) => void} */
let onRefused = () => {};

/** @param {(message: string) => void} listener */
export function whenRefused(listener) {
  onRefused = listener;
}

export function hasToken() {
  return sessionStorage.getItem(tokenName) !== null;
}

/** @param {string} token */
export function keepToken(token) {
  sessionStorage.setItem(tokenName, token);
}

export function forgetToken() {
  sessionStorage.removeItem(tokenName);
}

/**
 * An error of the API, or a missing or incomplete response (`isResponse` is false). If the response is missing, the
 * change may still have been made.
 */
export class ApiError extends Error {
  /** @param {number} status 0 without a response @param {string} message */
  constructor(status, message, isResponse = true) {
    super(message);
    this.status = status;
    this.isResponse = isResponse;
  }
}

/** How far the gateway's clock is ahead of the browser's clock, ms. */
let aheadMs = 0;

/** Returns the time of the gateway's clock, epoch ms. The times in responses come from the same clock. */
export function nowMs() {
  return Date.now() + aheadMs;
}

/**
 * @template {PathOf<'GET'>} Path
 * @param {Path} path a path template of the API
 * @param {SentAt<Path>} [sent]
 * @param {AbortSignal} [signal]
 * @returns {Promise<BodyOf<Path>>}
 * @throws {ApiError}
 */
export function ask(path, sent, signal) {
  return request(addressOf(path, sent), signal ? { signal } : {});
}

/**
 * As `ask`, with the version of the body for `If-Match`.
 *
 * @template {PathOf<'GET'>} Path
 * @param {Path} path a path template of the API
 * @param {SentAt<Path>} sent
 * @returns {Promise<{ body: BodyOf<Path>, version: string | undefined }>}
 * @throws {ApiError}
 */
export function askWithVersion(path, sent) {
  return exchange(addressOf(path, sent), { signal: AbortSignal.timeout(askTimeoutMs) });
}

/** The largest number of pages that `askForPages` reads. */
const listPagesMax = 1_000;

/**
 * Reads a whole list, page by page.
 *
 * @template {'/usage' | '/changes'} Path
 * @param {Path} path a path template of the API
 * @param {NonNullable<SentAt<Path>['query']>} query
 * @returns {Promise<readonly BodyOf<Path>[]>} the pages
 * @throws {ApiError}
 */
export async function askForPages(path, query) {
  /** @type {BodyOf<Path>[]} */
  const pages = [];
  /** @type {string | undefined} */
  let after;
  do {
    const signal = AbortSignal.timeout(askTimeoutMs);
    /** @type {any} */
    const page = await request(addressOf(path, { query: { ...query, after } }), { signal });
    pages.push(page);
    after = page.next;
  } while (after !== undefined && pages.length < listPagesMax);
  if (after !== undefined) throw new ApiError(0, 'The list is too long for a download. Use the command.');
  return pages;
}

/**
 * What the responses of the open page lack while Redis is away.
 *
 * @type {{ what: readonly string[], countsFromAt: string | undefined }}
 */
export let missingHere = { what: [], countsFromAt: undefined };

export function forgetMissing() {
  missingHere = { what: [], countsFromAt: undefined };
}

/** Each function requests one polled path of the open page immediately. @type {Set<() => void>} */
const polls = new Set();

/** After a change, requests every polled path of the open page immediately. */
export function askForAll() {
  for (const poll of polls) poll();
}

/**
 * @template {Change} Method
 * @template {PathOf<Method>} Path
 * @param {Method} method
 * @param {Path} path a path template of the API
 * @param {SentAt<Path, Method>} [sent]
 * @returns {Promise<BodyOf<Path, Method>>} undefined if the response has no body
 * @throws {ApiError}
 */
export function change(method, path, sent) {
  const json = sent?.body === undefined ? undefined : JSON.stringify(sent.body);
  const headers = { ...sent?.headers, ...(json && { 'Content-Type': 'application/json' }) };
  const body = json && { body: json };
  return request(addressOf(path, sent), {
    method,
    signal: AbortSignal.timeout(askTimeoutMs),
    headers,
    ...body,
  });
}

/**
 * Returns the address of a request below `/api/v1`.
 *
 * @param {string} path a path template
 * @param {{ params?: Readonly<Record<string, string>> | undefined, query?: Readonly<Record<string, string | number | undefined>> }} [sent]
 */
function addressOf(path, { params = {}, query = {} } = {}) {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''));
  return `${filled}${queryOf(query)}`;
}

/** @param {string} path @param {RequestInit} options @returns {Promise<any>} @throws {ApiError} */
async function request(path, options) {
  return (await exchange(path, options)).body;
}

/**
 * @param {string} path @param {RequestInit} options
 * @returns {Promise<{ body: any, version: string | undefined }>} the version is the `ETag`
 * @throws {ApiError}
 */
async function exchange(path, { headers, ...options }) {
  const token = sessionStorage.getItem(tokenName) ?? '';
  let response;
  let body;
  try {
    response = await fetch(`/api/v1${path}`, {
      ...options,
      headers: { ...headers, Authorization: `Bearer ${token}` },
    });
    body = response.status === 204 ? undefined : await response.json();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(response?.status ?? 0, 'The gateway does not respond.', false);
  }
  noteClock(response.headers.get('Date'));
  if (body?.missing) {
    const { what, countsFromAt } = body.missing;
    missingHere = { what: [...new Set([...missingHere.what, ...what])], countsFromAt };
  }
  if (response.ok) return { body, version: response.headers.get('ETag') ?? undefined };
  const message = typeof body?.message === 'string' ? body.message : `The status is ${response.status}.`;
  // A 401 means a wrong token, and `no_tokens` means that no token is configured. `onRefused` is called only if the tab
  // still uses the refused token.
  const isToken = response.status === 401 || body?.code === 'no_tokens';
  if (isToken && sessionStorage.getItem(tokenName) === token) onRefused(message);
  throw new ApiError(response.status, message);
}

/**
 * Updates the difference between the gateway's clock and the browser's clock. `Date` has only whole seconds, so a
 * difference below two seconds is ignored.
 * @param {string | null} date
 */
function noteClock(date) {
  const aheadBy = Date.parse(date ?? '') - Date.now();
  if (!Number.isNaN(aheadBy)) aheadMs = Math.abs(aheadBy) < 2_000 ? 0 : aheadBy;
}

/**
 * The largest share of the time that requests to one polled path may take. A path with slow responses is therefore
 * polled less often.
 */
const busyShareMax = 1 / 15;
const askTimeoutMs = 12_000;

/**
 * The minimum interval between two renderings of a page. The page shows the first response immediately. Later responses
 * that arrive in the same interval are shown together.
 */
const showEveryMs = 500;
/** @type {(() => void)[]} */
let toShow = [];
let shownAtMs = Number.NEGATIVE_INFINITY;

/** @param {() => void} show */
export function showSoon(show) {
  toShow.push(show);
  if (toShow.length > 1) return;
  setTimeout(
    () => {
      const all = toShow;
      toShow = [];
      shownAtMs = performance.now();
      for (const one of all) one();
    },
    Math.max(0, shownAtMs + showEveryMs - performance.now()),
  );
}

/** @type {Polled<never>} */
const nothingYet = { body: undefined, atMs: 0, everyMs: 0, error: undefined };

/**
 * Polls a path while the page is visible. Polling continues while the gateway is unreachable, so the page recovers when
 * the gateway responds again. While the gateway is unreachable, the page shows the last body with its age.
 *
 * @template {PathOf<'GET'>} Path
 * @param {Path | undefined} path a path template of the API; undefined: no request
 * @param {number} everyMs
 * @param {SentAt<Path>} [sent]
 * @returns {Polled<BodyOf<Path>>}
 */
export function usePolled(path, everyMs, sent) {
  const [polled, setPolled] = useState(/** @type {Polled<BodyOf<Path>>} */ (nothingYet));
  const address = path && addressOf(path, sent);
  useEffect(() => {
    if (address === undefined) return undefined;
    return repeat(everyMs, (signal) => request(address, { signal }), setPolled);
  }, [address, everyMs]);
  return polled;
}

export const staleAfterMs = 5_000;

/**
 * Whether a body is stale. A body may be as old as its polling interval.
 *
 * @param {Polled} polled @param {number} [atMs] on the browser's clock
 */
export function isStale({ body, atMs: arrivedMs, everyMs, error }, atMs = Date.now()) {
  const maxMs = error ? staleAfterMs : Math.max(staleAfterMs, everyMs + 1_000);
  return body !== undefined && atMs - arrivedMs > maxMs;
}

/** Rows of the last minutes are requested again, because other processes send their counts some seconds later. */
const stillGrowingMs = 3 * 60_000;
const keptBeforeMs = 3_600_000;

/**
 * Polls the rows of a period up to the present time (`/traffic`, the usage of a key). The first request reads all rows,
 * and later requests read only the last minutes.
 *
 * @template {'/traffic' | '/keys/{id}/usage'} Path
 * @param {Path} path a path template of the API, whose parameter `from` selects the rows
 * @param {{ id: string, params?: SentAt<Path>['params'], step?: string, fromMs: () => number, everyMs: number }} options `id`
 * identifies the requested rows
 * @returns {Polled<Rows<RowOf<Path>>>} the rows by their timestamps, epoch ms
 */
export function useRows(path, { id, params, step, fromMs, everyMs }) {
  const [polled, setPolled] = useState(/** @type {Polled<Rows<RowOf<Path>>>} */ (nothingYet));
  const latest = useRef({ params, step, fromMs });
  latest.current = { params, step, fromMs };
  useEffect(() => {
    /** @type {Map<number, RowOf<Path>>} */
    const rows = new Map();
    let completeUntilMs = 0;
    let wasComplete = false;
    setPolled(nothingYet);
    async function find(/** @type {AbortSignal} */ signal) {
      const { params, step, fromMs: first } = latest.current;
      const firstMs = first();
      const askedMs = nowMs();
      const fromMs = Math.max(firstMs, completeUntilMs - stillGrowingMs);
      const query = { from: new Date(fromMs).toISOString(), step };
      /** @type {{ rows: RowOf<Path>[], missing?: { countsFromAt?: string } }} */
      const body = await request(addressOf(path, { params, query }), { signal });
      for (const row of body.rows) rows.set(Date.parse(row.at), row);
      for (const atMs of rows.keys()) if (atMs < firstMs - keptBeforeMs) rows.delete(atMs);
      completeUntilMs = askedMs;
      const { missing } = body;
      wasComplete ||= missing === undefined;
      const unknownUntilMs = wasComplete ? undefined : Date.parse(missing?.countsFromAt ?? '') || undefined;
      return Object.assign(new Map(rows), { missing, unknownUntilMs });
    }
    return repeat(everyMs, find, setPolled);
  }, [id, everyMs]);
  return polled;
}

/** @param {unknown} error */
export function toApiError(error) {
  return error instanceof ApiError ? error : new ApiError(0, 'The gateway does not respond.', false);
}

/**
 * Polls with one request at a time, and pauses while the page is hidden.
 *
 * @template Body
 * @param {number} everyMs
 * @param {(signal: AbortSignal) => Promise<Body>} find
 * @param {(change: (before: Polled<Body>) => Polled<Body>) => void} tell
 * @returns {() => void} stops the polling
 */
function repeat(everyMs, find, tell) {
  const left = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let isUnderWay = false;
  let isFirst = true;
  let isWanted = false;

  async function run() {
    clearTimeout(timer);
    // The response to a request that is already in flight may show the state before the change, so another request
    // follows.
    isWanted = isUnderWay;
    if (isUnderWay || left.signal.aborted || document.visibilityState === 'hidden') return;
    isUnderWay = true;
    const startedMs = performance.now();
    const signal = AbortSignal.any([left.signal, AbortSignal.timeout(askTimeoutMs)]);
    /** @type {Partial<Polled<Body>>} */
    const change = await find(signal).then(
      (body) => ({ body, atMs: Date.now(), everyMs, error: undefined }),
      (error) => ({ error: toApiError(error) }),
    );
    if (left.signal.aborted) return;
    isUnderWay = false;
    const show = () => left.signal.aborted || tell((before) => ({ ...before, ...change }));
    if (isFirst) show();
    else showSoon(show);
    isFirst = false;
    const tookMs = performance.now() - startedMs;
    timer = setTimeout(run, isWanted ? 0 : Math.max(everyMs - tookMs, tookMs / busyShareMax));
  }

  void run();
  polls.add(run);
  document.addEventListener('visibilitychange', run);
  return () => {
    polls.delete(run);
    left.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', run);
  };
}

/**
 * Makes a query string of the parameters that are set.
 *
 * @param {Readonly<Record<string, string | number | undefined>>} parameters
 * @returns {'' | `?${string}`}
 */
export function queryOf(parameters) {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}
