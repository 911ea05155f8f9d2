/**
 * Control characters, which move the cursor, change colours or answer for the person at the keyboard, and the invisible
 * characters that reorder text. The two that join letters and emoji are harmless and stay.
 */
const unprintable = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text that somebody else wrote, as a terminal may show it. Line breaks stay, a tab becomes a space. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => {
    if (character === '\n') return character;
    return character === '\t' ? ' ' : `\\u{${character.codePointAt(0)?.toString(16)}}`;
  });
}

/** The same of every text in a JSON value, names of members included. */
export function printableJson(value: unknown): unknown {
  if (typeof value === 'string') return printable(value);
  if (Array.isArray(value)) return value.map(printableJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [printable(name), printableJson(member)]),
  );
}

/** A JSON value as text with the same meaning, in which `JSON.stringify` has left nothing that a terminal obeys. @param indent 0: on one line */
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
