import { keyFieldNames } from '../../keys/key-schema.ts';
import { settingNames } from '../schema/settings-schema.ts';
import { maskKeyLine } from './mask-key-line.ts';
import { maskSecrets } from './mask-secrets.ts';

/** The main file, which may contain the list of keys; the keys file; or the OpenAPI document. */
export type FileKind = 'settings' | 'keys' | 'api';

/**
 * Gives one line of a file, without its line break and with secrets masked, as a report or a log may show it.
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

/**
 * A field at the beginning of a line without indentation; and, anywhere, the field `keys` or a misspelling of it, unless its
 * value is a PEM file, as that of `tls.key`.
 */
const marginField = /^["']?([\w-]+)["']?\s*:/;
const keysField = /\bk[eys]{1,4}["']?\s*:(?!\s*["']?[\w./-]+\.(?:pem|key)["']?(?:[\s},]|$))/i;

/**
 * Makes the function that says whether a line of the main file belongs to a known field other than `keys`. It judges by
 * the lines above, since a file with a syntax error has no tree. When in doubt it says no.
 *
 * Each line is examined once, from the first on, and only the lines where the result changes are kept: to search upwards
 * for each of a hundred problems at the end of a million lines would take a minute.
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
