import { deprecationNotes } from '../../../../capabilities/lists/pages.js';
import { counted, figure, milliseconds, noFigure, relative } from '../../../../shared/words/figures.js';
import { callerList } from '../../../words/callers.js';
import { nowMs, usePolled } from '../api.js';
import { listTable } from '../list.js';
import { cards, html, Instant, instead, keyLink, Section, sparkline, useNow } from '../parts.js';
import { changeQuery } from '../router.js';

/** @import { BodyOf } from '../../../wires/api-types.ts' */
/** @import { PageProps } from '../live.js' */

/** @typedef {BodyOf<'/operations'>['operations'][number]} Operation */

/** @param {PageProps} props */
export function Operations({ query }) {
  const polled = usePolled('/operations', 5_000);
  const open = query.get('operation') ?? undefined;
  const operations = [...(polled.body?.operations ?? [])].sort(byUrgency);
  return html`<div class="operations">
    <${Section} title="Operations, 24 h" heading="h1" polled=${polled}>
      ${
        operations.length === 0
          ? instead(polled, 'The API document has no operations.')
          : cards(operations, {
              isSteady: true,
              idOf: ({ operationId }) => operationId,
              columns: columnsOf(
                open,
                operations.some(({ cost = 1 }) => cost !== 1),
              ),
            })
      }
    <//>
    ${open !== undefined && html`<${Callers} key=${open} operationId=${open} deprecation=${operations.find((one) => one.operationId === open)?.deprecation} />`}
  </div>`;
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

/** The units that a request costs. Requests without an operation cost 1 unit. @type {import('../parts.js').Column<Operation>} */
const unitsColumn = { title: 'Cost', kind: 'number', cell: ({ cost = 1 }) => figure(cost) };

/**
 * @param {string | undefined} open
 * @param {boolean} hasCosts whether an operation has another cost than 1 unit
 * @returns {import('../parts.js').Column<Operation>[]}
 */
function columnsOf(open, hasCosts) {
  return [
    {
      title: 'Operation',
      kind: 'id',
      cell: ({ operationId, method, path }) =>
        html`${
          operationId === ''
            ? html`<i>no operation</i>`
            : html`<a
              href=${`/operations?operation=${encodeURIComponent(operationId)}`}
              aria-current=${open === operationId ? 'true' : undefined}
              >${operationId}</a
            >`
        }${method !== undefined && html`<span class="muted"> ${method} ${path}</span>`}`,
    },
    { title: 'State', cell: operationState },
    ...(hasCosts ? [unitsColumn] : []),
    { title: 'Calls', kind: 'number', cell: ({ requests }) => figure(requests) },
    { title: '429', kind: 'number', cell: (one) => figure(requestsWith(one, (status) => status === 429)) },
    {
      title: 'Other 4xx',
      kind: 'number',
      cell: (one) => figure(requestsWith(one, (status) => status >= 400 && status < 500 && status !== 429)),
    },
    {
      title: '5xx',
      kind: 'number',
      cell: (one) => figure(requestsWith(one, (status) => status >= 500)),
      // A 501 without an operation is not marked as a failure, because the client sent an unknown method.
      isBad: (one) =>
        requestsWith(one, (status) => status >= 500 && !(status === 501 && one.operationId === '')) > 0,
    },
    { title: 'Own p50 / p99 ms', narrow: 'Own ms', kind: 'number', cell: ({ ownTime }) => times(ownTime) },
    {
      title: 'Upstream p50 / p99 ms',
      narrow: 'Upstream ms',
      kind: 'number',
      cell: ({ upstreamTime }) => times(upstreamTime),
    },
    { title: 'Last call', kind: 'number', cell: ({ lastMs }) => html`<${Instant} atMs=${lastMs} />` },
  ];
}

/** @param {Operation} operation @param {(status: number) => boolean} isWanted */
function requestsWith({ statuses = {} }, isWanted) {
  return Object.entries(statuses).reduce(
    (sum, [status, number]) => (isWanted(Number(status)) ? sum + number : sum),
    0,
  );
}

/** @param {Operation['ownTime']} time */
function times({ p50Ms, p99Ms } = {}) {
  return p50Ms === undefined ? noFigure : `${milliseconds(p50Ms)} / ${milliseconds(p99Ms)}`;
}

/** @param {Operation} operation */
function operationState({ stability, deprecation, requests = 0 }) {
  if (deprecation === undefined)
    return stability === undefined ? '' : html`<span class="state">${stability}</span>`;
  const { daysToSunset = Number.MAX_VALUE, sunsetAt, afterSunset, successor } = deprecation;
  const prefix = afterSunset === 'gone' ? 'removed ' : 'sunset ';
  return html`<span class=${`state ${requests > 0 && daysToSunset < 30 ? 'bad' : 'near'}`}>deprecated</span>${
    sunsetAt !== undefined && html` <${Instant} atMs=${Date.parse(sunsetAt)} prefix=${prefix} />`
  }${successor !== undefined && html`<span class="muted">, use ${successor}</span>`}${deprecationNotes.map((notesOn) => notesOn(deprecation))}`;
}

/** @param {{ operationId: string, deprecation: Operation['deprecation'] }} props */
function Callers({ operationId, deprecation }) {
  const polled = usePolled('/operations/{operationId}/callers', 10_000, {
    params: { operationId },
    query: { limit: 100 },
  });
  const { callers = [], more = 0, days = [] } = polled.body ?? {};
  const perDay = days.map(({ requests }) => requests);
  const byDay = `Calls by day (today last): ${perDay.map(figure).join(', ')}.`;
  const tools = html`<button type="button" onClick=${() => changeQuery({ operation: undefined })}>Close</button>`;
  return html`<${Section} title=${`Callers of ${operationId}`} polled=${polled} tools=${tools}>
    ${
      days.length > 0 &&
      html`<div class="trend">
        <p class="sentence">
          ${`${counted(callers.length + more, 'key')} called this operation in the last 24 hours${timeLeft(deprecation)}. ${byDay} `}
          <span class="muted">For a mailing list: <code>tollgate callers ${operationId} --csv</code></span>
        </p>
        ${sparkline(perDay, byDay)}
      </div>`
    }
    ${listTable(callerList, polled, {
      asked: { filter: {} },
      now: useNow(),
      key: operationId,
      cells: { id: { kind: 'id', cell: keyLink } },
    })}
    ${more > 0 && html`<p class="more">${`and ${figure(more)} more`}</p>`}
  <//>`;
}

/** Describes the time until the operation's sunset or removal. @param {Operation['deprecation']} deprecation */
function timeLeft(deprecation) {
  const { sunsetAt, afterSunset } = deprecation ?? {};
  if (sunsetAt === undefined) return '';
  const atMs = Date.parse(sunsetAt);
  const isGone = afterSunset === 'gone';
  return atMs > nowMs()
    ? `, and ${isGone ? 'it is removed' : 'its sunset is'} ${relative(atMs, nowMs())}`
    : `, and ${isGone ? 'it was removed' : 'its sunset is over'}`;
}
