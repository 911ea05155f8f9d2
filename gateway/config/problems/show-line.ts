import { keyFieldNames } from '../../keys/key-schema.ts';
import { isMasked, marksIn } from '../../shared/schema/marks.ts';
import { memberNames, settingNames, settingsSchema } from '../schema/settings-schema.ts';
import { maskKeyLine } from './mask-key-line.ts';

/** The main file (which may contain the keys), the keys file, or the OpenAPI document. */
export type FileKind = 'settings' | 'keys' | 'api';

/**
 * A line for a report or a log, without its line break and with secrets masked.
 *
 * @param start the offset of the line's first character
 * @param end the offset after its last character
 */
export type ShowLine = (start: number, end: number) => string;

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
 * Settings without a mark `secret` or `secretInUrl` in their schema. Their lines are shown, except for text that looks like a secret. The
 * lines of all other settings show only names and harmless values, because text in a wrong place may be a piece of a secret.
 */
const withoutSecrets: ReadonlySet<string> = new Set(
  Object.entries(settingsSchema.shape).flatMap(([name, schema]) =>
    marksIn(schema).some(({ mark }) => isMasked(mark)) ? [] : [name],
  ),
);

const otherSettings: ReadonlySet<string> = new Set(settingNames.filter((name) => name !== 'keys'));

/**
 * A field at the start of an unindented line, and the field `keys` (also misspelt) anywhere in a line. A field whose value is a PEM file,
 * such as `tls.key`, does not count as `keys`.
 */
const marginField = /^["']?([\w-]+)["']?\s*:/;
const keysField = /\bk[eys]{1,4}["']?\s*:(?!\s*["']?[\w./-]+\.(?:pem|key)["']?(?:[\s},]|$))/i;

/**
 * The known field other than `keys` to which a line of the main file belongs; undefined if this is unclear. Looks at the lines above,
 * because a file with a syntax error cannot be parsed.
 *
 * Examines each line once, and stores only the lines where the result changes. A separate search for each of a hundred problems at the end
 * of a million lines would take a minute.
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

/** An unknown field counts as `keys`. */
function settingOf(line: string): string | undefined {
  if (keysField.test(line)) return 'keys';
  const name = marginField.exec(line)?.[1];
  return name === undefined || otherSettings.has(name) ? name : 'keys';
}

/** For text that should contain no secrets: the API document, and settings other than `keys`. */
const secretShapes = [
  // The user information of a URL, up to the last @, because a password may contain any character.
  /(?<=:\/\/).+(?=@)/g,
  // redis://redis?password=…
  /(?<=[?&][\w-]+=)[^\s&"']+/g,
  // Issued by Tollgate.
  /\btg[al]?_\w+/g,
  // A webhook's secret belongs into a file.
  /\bwhsec_[^\s"',}]+/g,
  // Everything after the field, because a password may contain any character.
  /(?<=\b(?:sha256|secrets?|password|tokens?)["']?\s*:\s*)\S.*/gi,
];

/** Keeps the length, so that a caret below the line still points to the right place. */
function maskSecrets(line: string): string {
  return secretShapes.reduce(
    (masked, shape) => masked.replace(shape, (secret) => '*'.repeat(secret.length)),
    line,
  );
}
