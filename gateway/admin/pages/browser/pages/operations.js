import { counted, figure, noFigure, relative } from '../../../../shared/words/figures.js';
import { callerList } from '../../../words/callers.js';
import {
  deprecatedList,
  endTone,
  endWord,
  estimatedText,
  leftOut,
  notesOn,
  operationList,
  percentilesText,
  recordBegins,
  wholeHoursText,
  withoutKeyText,
} from '../../../words/operations.js';
import { nowMs, usePolled } from '../api.js';
import { listTable } from '../list.js';
import { choices, html, Instant, keyLink, Section, sparkline, useNow } from '../parts.js';
import { recordPeriod } from '../periods.js';
import { changeQuery } from '../router.js';

/** @import { Deprecation, Operation } from '../../../words/operations.js' */
/** @import { PageProps } from '../live.js' */

/** @typedef {ReturnType<typeof recordPeriod>} Period */

/** @param {PageProps} props */
export function Operations({ query }) {
  const now = useNow();
  const period = recordPeriod(query, now);
  const { from, to, text } = period;
  const polled = usePolled('/operations', 5_000, { query: { from, to } });
  const open = query.get('operation') ?? undefined;
  const { operations = [] } = polled.body ?? {};
  const hasDeprecated = operations.some(({ deprecation }) => deprecation !== undefined);
  const shown = period.value === undefined && polled.body ? wholeHoursText(polled.body, nowMs()) : text;
  return html`<div class="operations">
    <${Section} title=${`Operations, ${shown}`} heading="h1" polled=${polled} tools=${periodTools(period)}>
      <div class="sentence">
        ${recordBegins(polled.body ?? {}).map((line) => html`<p key=${line} class="near">${line}</p>`)}
        <p class="muted">Whole hours are counted. Days are days of UTC. ${estimatedText}</p>
      </div>
      ${listTable(operationList, polled, {
        asked: { filter: {} },
        now,
        key: 'operations',
        cells: {
          operation: { kind: 'id', cell: (one) => operationCell(one, query, open) },
          state: { cell: operationState },
          own: timesCell('Own p50/95/99 ms', ({ ownTime }) => ownTime),
          upstream: timesCell('Upstream p50/95/99 ms', ({ upstreamTime }) => upstreamTime),
          last_call: {
            cell: ({ lastMs }) => (lastMs === undefined ? noFigure : html`<${Instant} atMs=${lastMs} />`),
          },
        },
      })}
    <//>
    ${open !== undefined && html`<${Callers} key=${open} operationId=${open} period=${period} deprecation=${operations.find((one) => one.operationId === open)?.deprecation} />`}
    ${hasDeprecated && html`<${DeprecatedOperations} query=${query} period=${period} />`}
  </div>`;
}

/**
 * The three percentiles of a time in one line.
 *
 * @param {string} narrow the label on a narrow page @param {(operation: Operation) => Operation['ownTime']} timesOf
 * @returns {import('../list.js').Cell<Operation>}
 */
function timesCell(narrow, timesOf) {
  const cell = (/** @type {Operation} */ one) =>
    html`<span class="times">${percentilesText(timesOf(one))}</span>`;
  return { kind: 'number', width: 'number times', narrow, cell };
}

/** The named periods, and two days for any other period. @param {Period} period */
function periodTools({ texts, value, from, to }) {
  const day = (/** @type {'from' | 'to'} */ name, /** @type {string | undefined} */ shown) => {
    const choose = (/** @type {any} */ { currentTarget }) =>
      changeQuery({
        from: value === undefined ? from?.slice(0, 10) : undefined,
        to: value === undefined ? to?.slice(0, 10) : undefined,
        [name]: currentTarget.value,
        period: undefined,
      });
    const chosen = value === undefined ? shown?.slice(0, 10) : '';
    return html`<label class="day muted">${name} <input type="date" value=${chosen} onChange=${choose} /></label>`;
  };
  return html`${choices(texts, {
    label: 'Period',
    chosen: value,
    choose: (chosen) => changeQuery({ period: chosen, from: undefined, to: undefined }),
  })}
  ${day('from', from)} ${day('to', to)}`;
}

/**
 * An operation with a link to its callers in the same period.
 *
 * @param {Pick<Operation, 'operationId' | 'method' | 'path'>} operation
 * @param {URLSearchParams} query @param {string} [open]
 */
function operationCell({ operationId, method, path }, query, open) {
  const linked = new URLSearchParams(query);
  linked.set('operation', operationId);
  return html`${
    operationId === ''
      ? html`<i>no operation</i>`
      : html`<a href=${`/operations?${linked}`} aria-current=${open === operationId ? 'true' : undefined}>${operationId}</a>`
  }${method !== undefined && html`<span class="muted"> ${method} ${path}</span>`}`;
}

/** @param {Operation} operation */
function operationState({ stability, deprecation, requests }) {
  if (deprecation === undefined)
    return stability === undefined ? '' : html`<span class="state">${stability}</span>`;
  return html`<span class=${`state ${endTone(deprecation, requests)}`}>deprecated</span> ${ending(deprecation)}`;
}

/** When a deprecated operation ends, and what callers use instead. @param {Deprecation} deprecation */
function ending(deprecation) {
  const { sunsetAt, afterSunset, successor } = deprecation;
  const isServed = sunsetAt !== undefined && afterSunset === 'serve';
  return html`${endTime(deprecation)}${isServed && html`<span class="muted">, still served afterwards</span>`}${successor !== undefined && html`<span class="muted">, use ${successor}</span>`}${notesOn(deprecation).map((note) => html`<span class="muted">, ${note}</span>`)}`;
}

/** @param {Deprecation} deprecation */
function endTime(deprecation) {
  const { sunsetAt } = deprecation;
  if (sunsetAt === undefined) return '';
  return html`<${Instant} atMs=${Date.parse(sunsetAt)} prefix=${`${endWord(deprecation)} `} />`;
}

/** @param {{ operationId: string, period: Period, deprecation: Operation['deprecation'] }} props */
function Callers({ operationId, period: { from, to, text }, deprecation }) {
  const polled = usePolled('/operations/{operationId}/callers', 10_000, {
    params: { operationId },
    query: { from, to, limit: 100 },
  });
  const { callers = [], more = 0, days: all = [], missing } = polled.body ?? {};
  // A day without a call may have had calls that this gateway does not know.
  const days = missing ? all.slice(all.findIndex(({ requests }) => requests > 0)) : all;
  const perDay = days.map(({ requests }) => requests);
  const known = missing ? ' that this gateway knows' : '';
  const byDay = `Calls${known} by day (today last): ${perDay.map(figure).join(', ')}.`;
  const tools = html`<button type="button" onClick=${() => changeQuery({ operation: undefined })}>Close</button>`;
  return html`<${Section} title=${`Callers of ${operationId}, ${text}`} polled=${polled} tools=${tools}>
    ${
      days.length > 0 &&
      html`<div class="trend">
        <p class="sentence">
          ${`${counted(callers.length + more, 'key')} called this operation in this period${timeLeft(deprecation)}. ${byDay} `}
          <span class="muted">For a mailing list: <code>tollgate callers ${operationId}${periodOptions({ from, to })} --csv</code></span>
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
    <p class="more">${withoutKeyText}</p>
  <//>`;
}

/** @param {{ query: URLSearchParams, period: Period }} props */
function DeprecatedOperations({ query, period: { from, to, text } }) {
  const polled = usePolled('/deprecated', 30_000, { query: { from, to, limit: 100 } });
  const tools = html`<span class="muted">For a mailing list: <code>tollgate operations --deprecated${periodOptions({ from, to })} --csv</code></span>`;
  return html`<${Section} title=${`Deprecated operations and who calls them, ${text}`} polled=${polled} tools=${tools} name="deprecated">
    ${listTable(deprecatedList, polled, {
      asked: { filter: {} },
      now: useNow(),
      key: 'deprecated',
      cells: {
        operation: { kind: 'id', cell: (one) => operationCell(one, query) },
        ends: {
          cell: ({ deprecation, isFirst }) =>
            html`${deprecation.sunsetAt?.slice(0, 10) ?? 'no date'} ${isFirst ? ending(deprecation) : endTime(deprecation)}`,
        },
        key: {
          cell: ({ caller }) =>
            caller === undefined ? html`<span class="muted">no known caller</span>` : keyLink(caller),
        },
      },
    })}
    <p class="more">${withoutKeyText}</p>
    ${(polled.body === undefined ? [] : leftOut(polled.body)).map((line) => html`<p key=${line} class="more">${line}</p>`)}
  <//>`;
}

/** The options of a command for the same period. @param {Pick<Period, 'from' | 'to'>} period */
function periodOptions({ from, to }) {
  return `${from === undefined ? '' : ` --from ${from}`}${to === undefined ? '' : ` --to ${to}`}`;
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
