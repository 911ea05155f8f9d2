import { changeList, withKey } from '../../../words/changes.js';
import { timelineCsv } from '../../../words/csv.js';
import { askForPages, usePolled } from '../api.js';
import { html, SearchInAddress, selectInAddress } from '../parts.js';
import { CsvButton } from '../save-file.js';
import { timelinePage } from '../timeline.js';

/** @import { PageProps } from '../live.js' */

const perPage = 50;
const perPageMax = 200;

/** Changes and failed changes with their author, the newest first. @param {PageProps} props */
export function Changes({ query }) {
  const inAddress = (/** @type {string} */ name) => query.get(name) || undefined;
  const [after, key, by] = [inAddress('after'), inAddress('key'), inAddress('by')];
  const filter = { key, by };
  const isFiltered = key !== undefined || by !== undefined;
  // For a filter, the gateway reads its whole record.
  const everyMs = isFiltered ? 30_000 : 5_000;
  const polled = usePolled('/changes', everyMs, { query: { limit: perPage, after, ...filter } });
  const authors = [...new Set(['file', ...(polled.body?.changes ?? []).map(({ by }) => by)])];
  const read = async () => {
    const pages = await askForPages('/changes', { limit: perPageMax, ...filter });
    const changes = pages.flatMap(({ changes }) => changes);
    return timelineCsv(changeList, withKey({ isComplete: true, changes }, key));
  };
  const list = isFiltered ? { ...changeList, empty: 'No change matches this filter.' } : changeList;
  return timelinePage(list, polled, {
    title: 'Changes',
    after,
    tools: html`<div class="filters" role="search" aria-label="Filter the changes">
      <${SearchInAddress} name="key" chosen=${key} hint="id of a key" charsMax=${100} />
      ${selectInAddress('by', 'Author', [['', 'by anybody'], ...authors.map((name) => [name, name === 'file' ? 'by an edit of files' : `by ${name}`])], by)}
      <${CsvButton} key=${JSON.stringify(filter)} name="changes.csv" read=${read} />
    </div>`,
  });
}
