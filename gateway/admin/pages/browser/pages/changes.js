import { changeList } from '../../../words/changes.js';
import { usePolled } from '../api.js';
import { timelinePage } from '../timeline.js';

/** @import { PageProps } from '../live.js' */

const perPage = 50;

/** Changes and failed changes with their author, the newest first. @param {PageProps} props */
export function Changes({ query }) {
  const after = query.get('after') ?? undefined;
  const polled = usePolled('/changes', 5_000, { query: { limit: perPage, after } });
  return timelinePage(changeList, polled, { title: 'Changes', after });
}
