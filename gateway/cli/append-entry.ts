import { isSeq, parseDocument, stringify } from 'yaml';

/** The text with one more entry, or why it cannot be added. */
export type Appended =
  | { readonly kind: 'appended'; readonly text: string }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Adds an entry at the end of a list in a YAML text. Only the entry is inserted, at the end of the list as the parser
 * found it. Every other byte stays as it was written: comments, alignment, quotes.
 *
 * @param path the path to the list; empty when the document itself is the list, or has nothing but comments yet
 */
export function appendEntry(options: {
  readonly text: string;
  readonly path: readonly (string | number)[];
  readonly entry: Readonly<Record<string, unknown>>;
}): Appended {
  const { text, path, entry } = options;
  const document = parseDocument(text);
  const list = path.length === 0 ? document.contents : document.getIn(path, true);
  if (path.length === 0 && list === null) {
    return { kind: 'appended', text: endLine(text) + renderBlock(entry, 0) };
  }
  if (!isSeq(list) || !list.range)
    return { kind: 'refused', reason: 'there is no list that the entry could join' };

  const [start, end] = list.range;
  if (list.flow) {
    const bracket = text.lastIndexOf(']', end);
    const separator = list.items.length > 0 ? ', ' : '';
    const flow = separator + stringify(entry, { collectionStyle: 'flow', lineWidth: 0 }).trim();
    return { kind: 'appended', text: text.slice(0, bracket) + flow + text.slice(bracket) };
  }
  const indent = start - (text.lastIndexOf('\n', start - 1) + 1);
  const cut = endOfEntries(text, end, indent);
  return {
    kind: 'appended',
    text: endLine(text.slice(0, cut)) + renderBlock(entry, indent) + text.slice(cut),
  };
}

/**
 * Where the line of the last entry ends. The range of a list also covers comments below it: those indented deeper
 * belong to its last entry, the others to what follows.
 */
function endOfEntries(text: string, rangeEnd: number, indent: number): number {
  const lineEnd = text.indexOf('\n', text.slice(0, rangeEnd).trimEnd().length);
  const lines = (lineEnd === -1 ? text : text.slice(0, lineEnd + 1)).split(/(?<=\n)/);
  const last = lines.findLastIndex((line) => {
    const content = line.trimStart();
    return content !== '' && !(content.startsWith('#') && line.length - content.length <= indent);
  });
  return lines.slice(0, last + 1).join('').length;
}

function renderBlock(entry: Readonly<Record<string, unknown>>, indent: number): string {
  const margin = ' '.repeat(indent);
  return stringify([entry], { lineWidth: 0 }).replace(/^(?=.)/gm, margin);
}

function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
