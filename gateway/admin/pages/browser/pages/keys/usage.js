import { listCsv } from '../../../../words/csv.js';
import { monthList, monthNotice } from '../../../../words/usage.js';
import { askForPages, nowMs, usePolled } from '../../api.js';
import { listTable, sayAt } from '../../list.js';
import { html, keyLink, paging, Section, selectInAddress, useNow } from '../../parts.js';
import { CsvButton } from '../../save-file.js';

/** @import { PageProps } from '../../live.js' */

const perPage = 100;
const perPageMax = 500;

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
  const notice = polled.body && monthNotice(polled.body);
  const read = async () => {
    const pages = await askForPages('/usage', { month, limit: perPageMax });
    const keys = pages.flatMap(({ keys }) => keys);
    return listCsv(monthList, { month, fromAt: '', toAt: '', keys }, sayAt(nowMs()));
  };
  const tools = html`<div class="filters">${selectInAddress('month', 'Month', [['', present], ...months.slice(1).map((one) => [one, one])], month === present ? '' : month)}
    <${CsvButton} key=${month} name=${`usage-${month}.csv`} read=${read} /></div>`;
  return html`<${Section} title=${`Usage in ${month}`} heading="h1" polled=${polled} tools=${tools} name="usage">
    <p class="sentence muted">A month is a month of UTC. ${notice}</p>
    ${listTable(monthList, polled, {
      asked: { filter: {} },
      now,
      key: `${month}${after}`,
      cells: { id: { kind: 'id', cell: keyLink } },
    })}
    ${paging({ first: 'First page', further: 'Next page', after, next: polled.body?.next })}
  <//>`;
}

/** The present month and the 12 months before, such as `2026-11`, the newest first. The record has no older months. */
function lastMonths() {
  const now = new Date(nowMs());
  return Array.from({ length: 13 }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );
}
