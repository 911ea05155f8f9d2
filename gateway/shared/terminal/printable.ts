/**
 * Control characters, which can move the cursor, change colours or simulate input, and invisible characters that reorder text. The
 * zero-width joiner and non-joiner (U+200D, U+200C) are harmless.
 */
const unprintable = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Line breaks remain, and a tab becomes a space. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => {
    if (character === '\n') return character;
    return character === '\t' ? ' ' : `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/** Includes names of members. */
export function printableJson(value: unknown): unknown {
  if (typeof value === 'string') return printable(value);
  if (Array.isArray(value)) return value.map(printableJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [printable(name), printableJson(member)]),
  );
}

/** @param indent 0 for one line */
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
