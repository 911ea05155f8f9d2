import { keyFieldNames, settingNames } from '../schema/settings-schema.ts';
import { maskKeyLine } from './mask-key-line.ts';
import { maskSecrets } from './mask-secrets.ts';

/** What a file is: the main file, which may hold a list of keys, the keys file, or the OpenAPI document. */
export type FileKind = 'settings' | 'keys' | 'api';

/**
 * Shows one line of a file, without its line break, as a problem or a log may show it: with no secret in it.
 *
 * @param start the offset of the line's first character
 * @param end the offset behind its last
 */
export type ShowLine = (start: number, end: number) => string;

/** Makes the function that shows lines of one file. */
export function createShowLine({ kind, text }: { readonly kind: FileKind; readonly text: string }): ShowLine {
  const isUnderOtherSetting = createIsUnderOtherSetting(text);
  return (start, end) => {
    const line = text.slice(start, end).replace('\r', '');
    switch (kind) {
      case 'api':
        return maskSecrets(line);
      case 'settings':
        return isUnderOtherSetting(start) ? maskSecrets(line) : maskKeyLine(line, shownNames);
      case 'keys':
        return maskKeyLine(line, shownNames);
    }
  };
}

const shownNames = [...settingNames, ...keyFieldNames];
const otherSettings: ReadonlySet<string> = new Set(settingNames.filter((name) => name !== 'keys'));

/** The field that begins a line at the margin, and a field that is `keys` or was probably meant to be, anywhere. */
const marginField = /^["']?([\w-]+)["']?\s*:/;
const keysField = /\bk[eys]{1,4}["']?\s*:/i;

/**
 * Makes the function that tells whether a line of the main file stands under a known field other than `keys`. That is
 * told by the lines above, not by the tree: there is none for a file with a syntax error. A doubt counts as no.
 *
 * The lines are looked at from the first one on, each once, and only where the answer changes is kept: for a hundred
 * problems at the end of a million lines, looking upwards from each would take a minute.
 */
function createIsUnderOtherSetting(text: string): (lineStart: number) => boolean {
  const changes: { readonly lineStart: number; readonly isUnderOther: boolean }[] = [
    { lineStart: 0, isUnderOther: false },
  ];
  let next = 0;

  return (asked) => {
    while (next <= asked && next < text.length) {
      const lineBreak = text.indexOf('\n', next);
      const end = lineBreak === -1 ? text.length : lineBreak;
      const isUnderOther = settingOf(text.slice(next, end));
      if (isUnderOther !== undefined && isUnderOther !== changes.at(-1)?.isUnderOther) {
        changes.push({ lineStart: next, isUnderOther });
      }
      next = end + 1;
    }
    return changes.findLast(({ lineStart }) => lineStart <= asked)?.isUnderOther ?? false;
  };
}

/** Whether a line begins a known field other than `keys`; undefined when it begins none. */
function settingOf(line: string): boolean | undefined {
  if (keysField.test(line)) return false;
  const name = marginField.exec(line)?.[1];
  return name === undefined ? undefined : otherSettings.has(name);
}
