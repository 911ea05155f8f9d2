import { maskKeyLine } from './mask-key-line.ts';
import { maskSecrets } from './mask-secrets.ts';
import { keyFieldNames, settingNames } from './settings-schema.ts';

/** What a file is: the main file, which may hold a list of keys, the keys file, or the OpenAPI document. */
export type FileKind = 'settings' | 'keys' | 'api';

/** One line of a file, without its line break, as a problem or a log may show it: with no secret in it. */
export function showLine(options: {
  readonly kind: FileKind;
  readonly text: string;
  /** The offsets of the line's first character and of the one behind its last. */
  readonly start: number;
  readonly end: number;
}): string {
  const { kind, text, start, end } = options;
  const line = text.slice(start, end).replace('\r', '');
  switch (kind) {
    case 'api':
      return maskSecrets(line);
    case 'settings':
      return isUnderOtherSetting(text, end) ? maskSecrets(line) : maskKeyLine(line, shownNames);
    case 'keys':
      return maskKeyLine(line, shownNames);
  }
}

const shownNames = [...settingNames, ...keyFieldNames];
const otherSettings: ReadonlySet<string> = new Set(settingNames.filter((name) => name !== 'keys'));

/** The field that begins a line at the margin, and a field that is `keys` or was probably meant to be, anywhere. */
const marginField = /^["']?([\w-]+)["']?\s*:/;
const keysField = /\bk[eys]{1,4}["']?\s*:/i;

/**
 * Whether a line of the main file stands under a known field other than `keys`. It is told by the lines above, not by
 * the tree: there is none for a file with a syntax error. A doubt counts as no.
 */
function isUnderOtherSetting(text: string, end: number): boolean {
  for (let lineEnd = end; lineEnd >= 0; ) {
    const lineStart = lineEnd === 0 ? 0 : text.lastIndexOf('\n', lineEnd - 1) + 1;
    const line = text.slice(lineStart, lineEnd);
    if (keysField.test(line)) return false;
    const name = marginField.exec(line)?.[1];
    if (name !== undefined) return otherSettings.has(name);
    lineEnd = lineStart - 1;
  }
  return false;
}
