/** In columns, by code points. Wide East Asian characters and emoji take two. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Replaces the middle of a longer text with `…`. */
export function cutText(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  if (columns < 1) return '';
  const characters = [...text];
  const atEnd = beginning(characters.toReversed(), Math.floor((columns - 1) / 2));
  const atStart = beginning(characters, columns - 1 - widthOf(atEnd.join('')));
  return `${atStart.join('')}…${atEnd.toReversed().join('')}`;
}

export function padText(text: string, columns: number, side: 'left' | 'right'): string {
  const spaces = ' '.repeat(Math.max(0, columns - widthOf(text)));
  return side === 'left' ? spaces + text : text + spaces;
}

/** So that foreign text cannot forge a line. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Breaks at spaces. A word that is longer than a line is cut. */
export function wrapText(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (word === '') continue;
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > columns) {
      lines.push(line);
      line = cutText(word, columns);
    } else line = line === '' ? cutText(word, columns) : longer;
  }
  return line === '' ? lines : [...lines, line];
}

function beginning(characters: readonly string[], columns: number): string[] {
  const taken: string[] = [];
  let width = 0;
  for (const character of characters) {
    width += characterWidth(character);
    if (width > columns) break;
    taken.push(character);
  }
  return taken;
}

const without = /^(?:\p{M}|\u200c|\u200d)$/u;
const wide =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])$/u;

function characterWidth(character: string): number {
  if (without.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}
