import { nowMs, usePolled } from '../api.js';
import { count, counted, milliseconds, noFigure, percent, relative } from '../formats.js';
import { Cards, errorColumns, html, Instant, Instead, Section, Sparkline, SteadyRows } from '../parts.js';
import { changeQuery, keyPath } from '../router.js';

/** What is called, what fails, and who still calls what is about to be removed: that first. */
export function Operations({ query }) {
  const polled = usePolled('/operations', 5_000);
  const open = query.get('operation') ?? undefined;
  const operations = [...(polled.body?.operations ?? [])].sort(byUrgency);
  return html`<div class="operations">
    <${Section} title="Operations, 24 h" heading="h1" polled=${polled}>
      ${
        operations.length === 0
          ? html`<${Instead} polled=${polled}>The API document has no operations.<//>`
          : html`<${OperationsTable} operations=${operations} open=${open} />`
      }
    <//>
    ${open !== undefined && html`<${Callers} key=${open} operationId=${open} deprecation=${operations.find((one) => one.operationId === open)?.deprecation} />`}
  </div>`;
}

/** Deprecated ones that are still called come first, the next to be removed before others; then by calls. */
function byUrgency(one, other) {
  const rank = ({ deprecation, requests = 0 }) =>
    deprecation && requests > 0 ? (deprecation.daysToSunset ?? 1e6) : Number.POSITIVE_INFINITY;
  const [a, b] = [rank(one), rank(other)];
  if (a !== b) return a - b;
  return (other.requests ?? 0) - (one.requests ?? 0);
}

function OperationsTable({ operations, open }) {
  return html`<table class="cards">
    <thead>
      <tr>
        <th scope="col">Operation</th>
        <th scope="col">State</th>
        <th scope="col" class="number">Calls</th>
        <th scope="col" class="number">429</th>
        <th scope="col" class="number">Other 4xx</th>
        <th scope="col" class="number">5xx</th>
        <th scope="col" class="number">Own p50 / p99 ms</th>
        <th scope="col" class="number">Upstream p50 / p99 ms</th>
        <th scope="col" class="number">Last call</th>
      </tr>
    </thead>
    <${SteadyRows}
      items=${operations}
      idOf=${({ operationId }) => operationId}
      row=${(operation) => html`<${OperationRow} ...${operation} open=${open} />`}
    />
  </table>`;
}

function OperationRow({
  operationId,
  method,
  path,
  stability,
  deprecation,
  requests,
  statuses = {},
  ownTime,
  upstreamTime,
  lastMs,
  open,
}) {
  const sumOf = (/** @type {(status: number) => boolean} */ isWanted) =>
    Object.entries(statuses).reduce(
      (sum, [status, number]) => (isWanted(Number(status)) ? sum + Number(number) : sum),
      0,
    );
  const refused = sumOf((status) => status === 429);
  const clientErrors = sumOf((status) => status >= 400 && status < 500 && status !== 429);
  const serverErrors = sumOf((status) => status >= 500);
  // Without an operation a 501 is of a method that nobody knows: the client's own fault.
  const isFaulty = sumOf((status) => status >= 500 && !(status === 501 && operationId === '')) > 0;
  const name =
    operationId === ''
      ? html`<i>no operation</i>`
      : html`<a
          href=${`/operations?operation=${encodeURIComponent(operationId)}`}
          aria-current=${open === operationId ? 'true' : undefined}
          >${operationId}</a
        >`;
  return html`<tr>
    <td class="id">${name}${method !== undefined && html`<span class="muted"> ${method} ${path}</span>`}</td>
    <td data-label="State"><${OperationState} stability=${stability} deprecation=${deprecation} isCalled=${requests > 0} /></td>
    <td class="number" data-label="Calls">${count(requests)}</td>
    <td class="number" data-label="429">${count(refused)}</td>
    <td class="number" data-label="Other 4xx">${count(clientErrors)}</td>
    <td class=${`number ${isFaulty ? 'bad' : ''}`} data-label="5xx">${count(serverErrors)}</td>
    <td class="number" data-label="Own ms"><${Times} ...${ownTime} /></td>
    <td class="number" data-label="Upstream ms"><${Times} ...${upstreamTime} /></td>
    <td class="number" data-label="Last call"><${Instant} atMs=${lastMs} /></td>
  </tr>`;
}

function Times({ p50Ms, p99Ms }) {
  return p50Ms === undefined ? noFigure : `${milliseconds(p50Ms)} / ${milliseconds(p99Ms)}`;
}

function OperationState({ stability, deprecation, isCalled }) {
  if (deprecation === undefined)
    return stability === undefined ? '' : html`<span class="state">${stability}</span>`;
  const { daysToSunset, sunsetAt, afterSunset, successor } = deprecation;
  const isUrgent = isCalled && daysToSunset !== undefined && daysToSunset <= 30;
  const when =
    sunsetAt === undefined
      ? ''
      : html`, <${Instant} atMs=${Date.parse(sunsetAt)} prefix=${afterSunset === 'gone' ? 'removed ' : 'sunset '} />`;
  return html`<span class=${`state ${isUrgent ? 'bad' : 'near'}`}>deprecated</span>${when}${
    successor !== undefined && html`<span class="muted">, use ${successor}</span>`
  }`;
}

/** Whether the calls become fewer, and how long there is until the operation is removed. */
function Trend({ days, deprecation, callers, operationId }) {
  const perDay = days.map((/** @type {any} */ { requests }) => requests);
  const { daysToSunset, sunsetAt, afterSunset } = deprecation ?? {};
  const isGone = afterSunset === 'gone';
  // As in the table above.
  const left =
    daysToSunset === undefined
      ? ''
      : daysToSunset > 0
        ? `, and ${isGone ? 'it is removed' : 'its sunset is'} ${relative(Date.parse(sunsetAt), nowMs())}`
        : `, and ${isGone ? 'it was removed' : 'its sunset is over'}`;
  const text = `${counted(callers, 'key')} called it in the last 24 hours${deprecation ? left : ''}. Calls by day, today last: ${perDay.map(count).join(', ')}.`;
  return html`<div class="trend">
    <p class="sentence">${text} <span class="muted">The mailing list: <code>tollgate callers ${operationId} --csv</code></span></p>
    <${Sparkline} values=${perDay} label=${`Calls by day: ${perDay.map(count).join(', ')}`} />
  </div>`;
}

/** The callers of an operation, the most active caller first. */
function Callers({ operationId, deprecation }) {
  const polled = usePolled(`/operations/${encodeURIComponent(operationId)}/callers?limit=100`, 10_000);
  const { callers = [], more, days = [] } = polled.body ?? {};
  const all = callers.reduce((sum, { requests }) => sum + requests, 0);
  const tools = html`<button type="button" onClick=${() => changeQuery({ operation: undefined })}>Close</button>`;
  const columns = [
    {
      title: 'Key',
      kind: 'id',
      cell: ({ id, name }) =>
        html`<a href=${keyPath(id)}>${id}</a>${name !== undefined && html`<bdi class="muted"> ${name}</bdi>`}`,
    },
    { title: 'Plan', cell: ({ plan }) => plan ?? html`<span class="muted">removed</span>` },
    { title: 'Calls', kind: 'number', cell: ({ requests }) => count(requests) },
    { title: 'Share', kind: 'number', cell: ({ requests }) => percent(requests / all) },
    ...errorColumns,
    { title: 'Last call', kind: 'number', cell: ({ lastSeenMs }) => html`<${Instant} atMs=${lastSeenMs} />` },
  ];
  return html`<${Section} title=${`Who calls ${operationId}`} polled=${polled} tools=${tools}>
    ${days.length > 0 && html`<${Trend} days=${days} deprecation=${deprecation} callers=${callers.length + (more ?? 0)} operationId=${operationId} />`}
    ${
      callers.length === 0
        ? html`<${Instead} polled=${polled}>Nobody has called it in the last 24 hours.<//>`
        : html`<${Cards} columns=${columns} items=${callers} idOf=${({ id }) => id} isSteady=${true} />`
    }
    ${more !== undefined && html`<p class="more">${`and ${count(more)} more`}</p>`}
  <//>`;
}
