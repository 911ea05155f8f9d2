/**
 * Matches control characters and invisible characters that reorder text. Control characters can move the cursor, change colours or simulate
 * input. The zero-width joiner and non-joiner (U+200D, U+200C) are harmless and are not matched.
 */
const unprintable = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Makes foreign text safe for a terminal. Line breaks remain, and a tab becomes a space. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => {
    if (character === '\n') return character;
    return character === '\t' ? ' ' : `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/** Applies `printable` to every text in a JSON value, including names of members. */
export function printableJson(value: unknown): unknown {
  if (typeof value === 'string') return printable(value);
  if (Array.isArray(value)) return value.map(printableJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [printable(name), printableJson(member)]),
  );
}

/** Formats a JSON value as JSON text that is safe for a terminal. @param indent 0 for one line */
export function printableJsonText(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(unprintable, (character) =>
    character === '\n'
      ? character
      : character
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}
