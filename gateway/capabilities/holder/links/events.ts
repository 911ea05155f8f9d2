import { instantText } from '../../../fleet/wording.ts';
import { counted } from '../../../shared/words/figures.js';
import type { KeyChangeKind } from '../../interfaces/events.ts';

/** The changes of the links of a key. They show the first digits of a link's digest, and never the link. */
export const holderChanges = {
  link: {
    text: ({ by, key, after }, nowMs) =>
      `${by} made a link to the page of ${key}${instantText('until', after?.untilAt, nowMs)}.`,
  },
  unlink: {
    text({ by, key, before }) {
      const number = Array.isArray(before?.links) ? before.links.length : 1;
      return `${by} ended ${number === 1 ? 'a link' : counted(number, 'link')} to the page of ${key}.`;
    },
  },
} satisfies Readonly<Record<string, KeyChangeKind>>;
