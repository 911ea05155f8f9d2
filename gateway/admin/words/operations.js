import { deprecationNotes } from '../../capabilities/lists/words.js';
import {
  counted,
  hourMs,
  milliseconds,
  noFigure,
  relative,
  utcMinute,
  utcSecond,
} from '../../shared/words/figures.js';
import { refusalColumns, refusalMembers, refusalsOf } from './callers.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { Column, List } from './list.js' */

/** @typedef {BodyOf<'/operations'>} OperationsPage */
/** @typedef {OperationsPage['operations'][number]} Operation */
/** @typedef {NonNullable<Operation['deprecation']>} Deprecation */
/** @typedef {NonNullable<Operation['ownTime']>} Times */
/** @typedef {BodyOf<'/deprecated'>} DeprecatedPage */
/** @typedef {DeprecatedPage['operations'][number]} Deprecated */
/** `isFirst`: whether the row is the first of its operation. */
/** @typedef {Omit<Deprecated, 'callers'> & { readonly isFirst: boolean, readonly isUnknown: boolean, readonly caller: Deprecated['callers'][number] | undefined }} DeprecatedRow */

/**
 * The hours that are counted for a period, such as "whole hours, from 2026-11-29 15:00 to 2026-11-29 16:37 UTC".
 *
 * @param {{ readonly fromAt: string, readonly toAt: string }} period @param {number} nowMs
 */
export function wholeHoursText({ fromAt, toAt }, nowMs) {
  const [fromMs, toMs] = [Date.parse(fromAt), Date.parse(toAt)];
  const endMs = Math.min(Math.ceil(toMs / hourMs) * hourMs, Math.max(nowMs, toMs));
  // Another program in place of the gateway may send any text.
  const minute = (/** @type {number} */ atMs) =>
    Number.isNaN(atMs) ? noFigure : utcSecond(new Date(atMs).toISOString()).slice(0, 16);
  return `whole hours, from ${minute(Math.floor(fromMs / hourMs) * hourMs)} to ${minute(endMs)} UTC`;
}

/** What a reader must know about percentiles. */
export const estimatedText = 'Percentiles are estimates from a histogram.';

const percentiles = /** @type {const} */ (['p50', 'p95', 'p99']);

/** A number of requests, which is unknown without a record. */
const callCount = /** @type {const} */ ({ kind: 'count', missing: noFigure });

/** The operations with their requests and times. @type {List<OperationsPage, Operation>} */
export const operationList = {
  columns: {
    operation: {
      title: 'Operation',
      value: ({ operationId }) => operationId || 'no operation',
      terminal: { cutsTo: 12 },
    },
    method: { title: 'Method', value: ({ method }) => method },
    path: { title: 'Path', value: ({ path }) => path, terminal: { cutsTo: 8 } },
    state: {
      title: 'State',
      value: ({ stability, deprecation }, { nowMs }) =>
        deprecation ? `deprecated${endText(deprecation, nowMs)}` : stability,
      terminal: { isOptional: true },
    },
    cost: { title: 'Cost', kind: 'count', isOptional: true, value: ({ cost }) => cost },
    requests: { title: 'Calls', ...callCount, value: ({ requests }) => requests },
    limited: { title: '429', ...callCount, value: (one) => requestsWith(one, (status) => status === 429) },
    client_errors: {
      title: 'Other 4xx',
      ...callCount,
      value: (one) => requestsWith(one, (status) => status >= 400 && status < 500 && status !== 429),
    },
    server_errors: {
      title: '5xx',
      ...callCount,
      value: (one) => requestsWith(one, (status) => status >= 500),
      // A 501 without an operation is not marked as a failure, because the client sent an unknown method.
      tone: (one) =>
        requestsWith(one, (status) => status >= 500 && !(status === 501 && one.operationId === ''))
          ? 'bad'
          : undefined,
    },
    ...timeColumns('own', 'Own', ({ ownTime }) => ownTime),
    ...timeColumns('upstream', 'Upstream', ({ upstreamTime }) => upstreamTime),
    last_call: { title: 'Last call', kind: 'ago', missing: noFigure, value: ({ lastMs }) => lastMs },
  },
  onTerminal: [
    ...['operation', 'requests', 'limited', 'client_errors', 'server_errors', 'own', 'upstream'],
    ...['state', 'last_call', 'cost', 'method', 'path'],
  ],
  onPage: [
    ...['operation', 'state', 'cost', 'requests', 'limited', 'client_errors', 'server_errors'],
    ...['own', 'upstream', 'last_call'],
  ],
  inCsv: [
    ...['operation', 'method', 'path', 'requests', 'limited', 'client_errors', 'server_errors'],
    ...percentiles.map((name) => `own_${name}_ms`),
    ...percentiles.map((name) => `upstream_${name}_ms`),
    'last_call',
  ],
  rows({ operations }) {
    const hasCosts = operations.some(({ cost = 1 }) => cost !== 1);
    return operations.map((one) => (hasCosts ? { cost: 1, ...one } : one)).sort(byUrgency);
  },
  idOf: ({ operationId }) => operationId,
  empty: () => ({ parts: ['The API document has no operations.'] }),
};

/** The deprecated operations, with one row for each caller. @type {List<DeprecatedPage, DeprecatedRow>} */
export const deprecatedList = {
  columns: {
    operation: { title: 'Operation', value: ({ operationId }) => operationId, terminal: { cutsTo: 12 } },
    ends: {
      title: 'Until',
      value: ({ deprecation: { sunsetAt } }, { nowMs }) =>
        sunsetAt && `${sunsetAt.slice(0, 10)}, ${relative(Date.parse(sunsetAt), nowMs)}`,
      missing: 'no date',
      tone: ({ deprecation, caller }) => endTone(deprecation, caller?.requests),
    },
    after_sunset: { title: 'Then', value: ({ deprecation: { afterSunset } }) => afterSunset },
    key: {
      title: 'Key',
      value: ({ caller }) => caller?.id,
      missing: 'no known caller',
      terminal: { cutsTo: 12 },
    },
    plan: {
      title: 'Plan',
      value: ({ caller }) => caller && (caller.plan ?? 'removed'),
      terminal: { cutsTo: 10 },
    },
    requests: {
      title: 'Calls',
      ...callCount,
      value: ({ caller, isUnknown }) => caller?.requests ?? (isUnknown ? undefined : 0),
    },
    last_call: { title: 'Last call', kind: 'ago', value: ({ caller }) => caller?.lastSeenMs },
    ...refusalColumns((/** @type {DeprecatedRow} */ { caller }) => caller),
    ...Object.assign({}, ...refusalMembers.map(refusalCsvColumns)),
    successor: {
      title: 'Use',
      isOptional: true,
      value: ({ deprecation: { successor } }) => successor,
      terminal: { cutsTo: 12 },
    },
    notes: {
      title: 'Before',
      isOptional: true,
      value: ({ deprecation }) => notesOn(deprecation).join('; ') || undefined,
      terminal: { cutsTo: 12 },
    },
    name: { title: 'Name', isOptional: true, value: ({ caller }) => caller?.name, terminal: { cutsTo: 12 } },
    sunset: { title: 'Sunset', value: ({ deprecation: { sunsetAt } }) => sunsetAt },
    days: { title: 'Days', kind: 'count', value: ({ deprecation: { daysToSunset } }) => daysToSunset },
  },
  onTerminal: [
    ...['operation', 'ends', 'after_sunset', 'key', 'requests', 'last_call', 'plan'],
    ...refusalMembers,
    ...['successor', 'name', 'notes'],
  ],
  onPage: [...['operation', 'ends', 'key', 'plan', 'requests'], ...refusalMembers, 'last_call'],
  inCsv: [
    ...['operation', 'sunset', 'days', 'after_sunset', 'successor', 'notes'],
    ...['key', 'name', 'plan', 'requests', 'last_call'],
    ...refusalMembers.flatMap((member) => Object.keys(refusalCsvColumns(member))),
  ],
  // While Redis is away, other callers may not be known.
  rows: ({ operations, missing }) =>
    operations.flatMap(({ callers, ...operation }) =>
      (callers.length === 0 ? [undefined] : callers).map((caller, index) => ({
        ...operation,
        caller,
        isFirst: index === 0,
        isUnknown: missing !== undefined,
      })),
    ),
  idOf: ({ operationId, caller }) => `${operationId} ${caller?.id ?? ''}`,
  empty: () => ({ parts: ['The API document has no deprecated operation.'] }),
};

/** A request without a valid secret belongs to no caller. */
export const withoutKeyText = 'Requests without a valid secret are in no row: tollgate keys list --dead';

/** Says which callers and operations are not in the list of deprecated operations. @param {DeprecatedPage} page @returns {string[]} */
export function leftOut({ operations, more = 0 }) {
  return [
    ...operations.flatMap(({ operationId, more: callers = 0 }) =>
      callers === 0
        ? []
        : [
            `${counted(callers, 'more key calls', 'more keys call')} ${operationId}: tollgate callers ${operationId}`,
          ],
    ),
    ...(more === 0
      ? []
      : [
          `${counted(more, 'more deprecated operation is', 'more deprecated operations are')} not in this list.`,
        ]),
  ];
}

/**
 * Says where the usage record begins, if it begins later than the period.
 *
 * @param {{ readonly recordFromAt?: string | undefined }} page
 * @returns {string[]}
 */
export function recordBegins({ recordFromAt }) {
  return recordFromAt === undefined
    ? []
    : [`The usage record begins at ${utcMinute(recordFromAt)}: earlier requests are not counted.`];
}

/** Returns the texts of capabilities about a deprecation. @param {Deprecation} deprecation @returns {readonly string[]} */
export function notesOn(deprecation) {
  return deprecationNotes.flatMap((notesOf) => notesOf(deprecation));
}

/** An operation that still has callers is marked as urgent 30 days before its sunset. @param {Deprecation} deprecation */
export function endTone({ daysToSunset = Number.MAX_VALUE }, requests = 0) {
  return requests > 0 && daysToSunset < 30 ? /** @type {const} */ ('bad') : /** @type {const} */ ('near');
}

/** The word before the time of a sunset. @param {Deprecation} deprecation */
export function endWord({ afterSunset }) {
  return afterSunset === 'gone' ? 'removed' : 'sunset';
}

/** The three percentiles of a time in one text, ms. @param {Partial<Times>} [times] */
export function percentilesText({ p50Ms, p95Ms, p99Ms } = {}) {
  return p50Ms === undefined ? noFigure : [p50Ms, p95Ms, p99Ms].map(milliseconds).join(' / ');
}

/** @param {Deprecation} deprecation @param {number} nowMs */
function endText(deprecation, nowMs) {
  const { sunsetAt } = deprecation;
  return sunsetAt === undefined ? '' : `, ${endWord(deprecation)} ${relative(Date.parse(sunsetAt), nowMs)}`;
}

/**
 * Orders operations. Deprecated operations with callers come first, ordered by their sunset. All other operations
 * follow, ordered by their number of calls.
 *
 * @param {Operation} one @param {Operation} other
 */
function byUrgency(one, other) {
  const rank = (/** @type {Operation} */ { deprecation, requests = 0 }) =>
    deprecation && requests > 0 ? (deprecation.daysToSunset ?? 1e6) : Number.MAX_VALUE;
  return rank(one) - rank(other) || (other.requests ?? 0) - (one.requests ?? 0);
}

/** @param {Operation} operation @param {(status: number) => boolean} isWanted @returns {number | undefined} undefined if it is not known */
function requestsWith({ statuses }, isWanted) {
  return (
    statuses &&
    Object.entries(statuses).reduce(
      (sum, [status, number]) => (isWanted(Number(status)) ? sum + number : sum),
      0,
    )
  );
}

/**
 * Returns a column with the three percentiles for people, and a column for each percentile for CSV.
 *
 * @param {string} name @param {string} title @param {(operation: Operation) => Times | undefined} timesOf
 * @returns {Record<string, Column<Operation>>}
 */
function timeColumns(name, title, timesOf) {
  const ofCsv = percentiles.map((percentile) => [
    `${name}_${percentile}_ms`,
    { title: percentile, value: (/** @type {Operation} */ one) => timesOf(one)?.[`${percentile}Ms`] },
  ]);
  return {
    [name]: {
      title: `${title} p50 / p95 / p99 ms`,
      value: (one) => percentilesText(timesOf(one)),
      terminal: { title: `${title} p50/95/99 ms` },
    },
    ...Object.fromEntries(ofCsv),
  };
}

/**
 * The refusals of one kind as plain values. @param {string} member
 * @returns {Record<string, Column<DeprecatedRow>>}
 */
function refusalCsvColumns(member) {
  const of = (/** @type {DeprecatedRow} */ { caller }) => caller && refusalsOf(caller, member);
  return {
    [`${member}_requests`]: { title: 'Refused', kind: 'count', value: (row) => of(row)?.requests },
    [`${member}_last`]: { title: 'Last refusal', value: (row) => of(row)?.lastAt },
    [`${member}_still_calls`]: {
      title: 'Still calls',
      value: (row) => of(row) && String(of(row)?.stillCalls),
    },
  };
}
