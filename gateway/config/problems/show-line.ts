import { keyFieldNames } from '../../keys/key-schema.ts';
import { isMasked, marksIn } from '../../shared/schema/marks.ts';
import { memberNames, settingNames, settingsSchema } from '../schema/settings-schema.ts';
import { maskKeyLine } from './mask-key-line.ts';

/** The kind of a file: the main file, which may contain the list of keys; the keys file; or the OpenAPI document. */
export type FileKind = 'settings' | 'keys' | 'api';

/**
 * Returns one line of a file for a report or a log, without its line break and with secrets masked.
 *
 * @param start the offset of the line's first character
 * @param end the offset after its last character
 */
export type ShowLine = (start: number, end: number) => string;

/** Makes the function that shows lines of one file. */
export function createShowLine({ kind, text }: { readonly kind: FileKind; readonly text: string }): ShowLine {
  const otherSettingAt = createOtherSettingAt(text);
  return (start, end) => {
    const line = text.slice(start, end).replace('\r', '');
    switch (kind) {
      case 'api':
        return maskSecrets(line);
      case 'settings': {
        const setting = otherSettingAt(start);
        if (setting === undefined) return maskKeyLine(line, keyLineNames);
        return withoutSecrets.has(setting) ? maskSecrets(line) : maskKeyLine(line, memberNames());
      }
      case 'keys':
        return maskKeyLine(line, keyLineNames);
    }
  };
}

const keyLineNames = [...settingNames, ...keyFieldNames];

/**
 * The settings without a mark `secret` or `secretInUrl` in their schema. Their lines are shown, except for text that looks like a secret. In
 * the lines of all other settings, only names and harmless values are shown, because text in a wrong place may be a piece of a secret.
 */
const withoutSecrets: ReadonlySet<string> = new Set(
  Object.entries(settingsSchema.shape).flatMap(([name, schema]) =>
    marksIn(schema).some(({ mark }) => isMasked(mark)) ? [] : [name],
  ),
);

const otherSettings: ReadonlySet<string> = new Set(settingNames.filter((name) => name !== 'keys'));

/**
 * The pattern `marginField` matches a field at the start of an unindented line. The pattern `keysField` matches the field `keys`,
 * or a misspelling of `keys`, anywhere in a line. `keysField` excludes fields whose value is a PEM file, such as `tls.key`.
 */
const marginField = /^["']?([\w-]+)["']?\s*:/;
const keysField = /\bk[eys]{1,4}["']?\s*:(?!\s*["']?[\w./-]+\.(?:pem|key)["']?(?:[\s},]|$))/i;

/**
 * Makes a function that returns the known field other than `keys` to which a line of the main file belongs. The function examines the lines
 * above, because a file with a syntax error cannot be parsed. The function returns undefined if it cannot decide.
 *
 * The function examines each line once, in the order of the file, and stores only the lines where the result changes. A separate
 * search for each of a hundred problems at the end of a million lines would take a minute.
 */
function createOtherSettingAt(text: string): (lineStart: number) => string | undefined {
  const changes: { readonly lineStart: number; readonly setting: string | undefined }[] = [];
  let next = 0;

  return (asked) => {
    while (next <= asked && next < text.length) {
      const lineBreak = text.indexOf('\n', next);
      const end = lineBreak === -1 ? text.length : lineBreak;
      const begun = settingOf(text.slice(next, end));
      const setting = begun === 'keys' ? undefined : begun;
      if (begun !== undefined && setting !== changes.at(-1)?.setting)
        changes.push({ lineStart: next, setting });
      next = end + 1;
    }
    return changes.findLast(({ lineStart }) => lineStart <= asked)?.setting;
  };
}

/** The known field that begins on the line. An unknown field counts as `keys`. Returns undefined if no field begins on the line. */
function settingOf(line: string): string | undefined {
  if (keysField.test(line)) return 'keys';
  const name = marginField.exec(line)?.[1];
  return name === undefined || otherSettings.has(name) ? name : 'keys';
}

/**
 * Patterns of secrets. These patterns are applied to text that should contain no secrets: the API document, and settings other
 * than `keys`.
 */
const secretShapes = [
  // The user information of a URL, up to the last @ in the line, because a password may contain any character.
  /(?<=:\/\/).+(?=@)/g,
  // Query parameters of a URL, such as redis://redis?password=…
  /(?<=[?&][\w-]+=)[^\s&"']+/g,
  // A key's secret or an admin token that Tollgate has issued.
  /\btga?_\w+/g,
  // The secret of a webhook, which belongs into a file.
  /\bwhsec_[^\s"',}]+/g,
  // The rest of a line after a field for digests, secrets, passwords or tokens. The pattern ends at the end of the line, because a password
  // may contain any character.
  /(?<=\b(?:sha256|secrets?|password|tokens?)["']?\s*:\s*)\S.*/gi,
];

/** Replaces each character of a secret by an asterisk, so that a caret below the line still points to the right place. */
function maskSecrets(line: string): string {
  return secretShapes.reduce(
    (masked, shape) => masked.replace(shape, (secret) => '*'.repeat(secret.length)),
    line,
  );
}
