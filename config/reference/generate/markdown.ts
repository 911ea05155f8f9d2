/** The first line says where the page comes from. */
export function pageHead(title: string, source: string): string {
  return `<!-- \`npm run references\` writes this page from ${source}. Edit the texts there. -->\n\n# ${title}`;
}

/** Puts a blank line between the parts, and leaves out empty parts. */
export function page(parts: readonly (string | undefined)[]): string {
  return `${parts.filter((part) => part !== undefined && part !== '').join('\n\n')}\n`;
}

export function code(text: string): string {
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``;
}

export function codeBlock(text: string): string {
  return text.trimEnd().replaceAll(/^(?=.)/gm, '    ');
}

/** @param depth the number of lists around this list */
export function bullet(text: string, depth = 0): string {
  return `${'  '.repeat(depth)}- ${text}`;
}

/** `a`, `b` or `c`. */
export function either(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`;
}

/** Joins sentences. A sentence without an end gets a full stop. */
export function sentences(...all: readonly (string | undefined)[]): string {
  return all
    .flatMap((one) => (one === undefined || one === '' ? [] : [/[.:)]$/.test(one) ? one : `${one}.`]))
    .join(' ');
}
