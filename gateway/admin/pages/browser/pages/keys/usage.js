import { usageNotes } from '../../../../../capabilities/lists/words.js';
import { counted, figure } from '../../../../../shared/words/figures.js';
import { listCsv } from '../../../../words/csv.js';
import { emptyMonthText, monthList, monthNotice } from '../../../../words/usage.js';
import { ApiError, askForPages, nowMs, usePolled } from '../../api.js';
import { listTable, sayAt } from '../../list.js';
import { html, keyLink, paging, Section, selectInAddress, useNow } from '../../parts.js';
import { CsvButton } from '../../save-file.js';

/** @import { MonthPage } from '../../../../words/usage.js' */
/** @import { PageProps } from '../../live.js' */

const perPage = 500;

/** The usage of all keys in a month, for bills. @param {PageProps} props */
export function Usage({ query }) {
  const now = useNow();
  const months = lastMonths();
  const [present = ''] = months;
  const month = query.get('month') || present;
  const after = query.get('after') ?? undefined;
  // The figures of a past month do not change.
  const polled = usePolled('/usage', month === present ? 10_000 : 60_000, {
    query: { month, after, limit: perPage },
  });
  const { body } = polled;
  const notice = body && monthNotice(body);
  // The response is sorted by id. If it has every key, the page shows the largest number of requests first.
  const isWhole = body !== undefined && after === undefined && body.next === undefined;
  const shown = isWhole
    ? { ...polled, body: { ...body, keys: body.keys.toSorted((a, b) => b.offered - a.offered) } }
    : polled;
  const read = async () => {
    const pages = await askForPages('/usage', { month, limit: perPage });
    if (pages.some(({ missing }) => missing)) throw new ApiError(0, 'Redis is away, so figures are missing.');
    const keys = pages.flatMap(({ keys }) => keys);
    return listCsv(monthList, { month, fromAt: '', toAt: '', keys }, sayAt(nowMs()));
  };
  const tools = html`<div class="filters">${selectInAddress('month', 'Month', [['', present], ...months.slice(1).map((one) => [one, one])], month === present ? '' : month)}
    <${CsvButton} key=${month} name=${`usage-${month}.csv`} read=${read} /></div>`;
  return html`<${Section} title=${`Usage in ${month}`} heading="h1" polled=${polled} tools=${tools} name="usage">
    <div class="sentence">
      ${isWhole && !(body.missing && body.keys.length === 0) && html`<p>${totalText(body)}</p>`}
      <p class="muted">A month is a month of UTC. ${notice} ${body && !isWhole && 'The keys are sorted by id.'} ${usageNotes.join(' ')}</p>
    </div>
    ${listTable(monthList, shown, {
      asked: { filter: {} },
      now,
      key: `${month}${after}`,
      cells: { id: { kind: 'id', cell: keyLink } },
    })}
    ${paging({ first: 'First page', further: 'Next page', after, next: polled.body?.next })}
  <//>`;
}

/** @param {Pick<MonthPage, 'month' | 'keys' | 'missing'>} page */
function totalText({ month, keys, missing }) {
  const sum = (/** @type {'offered' | 'admitted'} */ name) => keys.reduce((all, key) => all + key[name], 0);
  const used = keys.filter(({ offered }) => offered > 0).length;
  if (used === 0) return emptyMonthText({ month });
  const known = missing === undefined ? '' : 'At least ';
  return `${known}${counted(sum('offered'), 'request')} of ${counted(used, 'key')}, ${figure(sum('admitted'))} of them admitted.`;
}

/** The present month and the 12 months before, such as `2026-11`, the newest first. The record has no older months. */
function lastMonths() {
  const now = new Date(nowMs());
  return Array.from({ length: 13 }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );
}
