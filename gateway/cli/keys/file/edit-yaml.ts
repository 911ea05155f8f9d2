import { isDeepStrictEqual } from 'node:util';
import { isMap, isScalar, isSeq, type Node, type Pair, parseDocument, stringify, type YAMLMap } from 'yaml';
import { configSizes } from '../../../config/config-sizes.ts';
import { type ParsedDocument, toPlain } from './document-to-plain.ts';

/** A path to a part of a document: field names and list indexes. */
type Path = readonly (string | number)[];

/** A change of the data in a YAML text. */
export type YamlEdit =
  /**
   * Adds entries at the end of a list. Undefined members of an entry are left out. An empty path means the document itself, which
   * may be empty.
   */
  | {
      readonly kind: 'append';
      readonly path: Path;
      readonly entries: readonly Readonly<Record<string, unknown>>[];
    }
  /**
   * Sets a field of a mapping. A new field is inserted after the existing field `after`. A list or mapping is written on one line, without
   * undefined members.
   */
  | {
      readonly kind: 'set';
      readonly path: Path;
      readonly name: string;
      readonly value: unknown;
      readonly after: string;
    }
  /**
   * Removes a field. If the field shares its line with other text, such as a comment, the field stays and gets the value of the member
   * `or`. Without `or`, the edit is refused.
   */
  | { readonly kind: 'remove'; readonly path: Path; readonly name: string; readonly or?: boolean };

/** The edited text, or the reason why the text cannot be edited. The reason completes a sentence of the caller. */
export type EditedYaml =
  | { readonly kind: 'edited'; readonly text: string }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Edits a YAML text. The edit inserts, replaces and removes characters only in the parts that change. Comments, order, alignment
 * and quotes of all other parts stay. The function parses the edited text, and refuses an edit that would also change other data.
 *
 * @param edits at the same place, insertions keep the order of the edits
 */
export function editYaml(original: string, edits: readonly YamlEdit[]): EditedYaml {
  // The parser counts a byte order mark as a column, so the first line would seem indented deeper than the other lines.
  if (original.startsWith(byteOrderMark)) {
    const result = editYaml(original.slice(byteOrderMark.length), edits);
    return result.kind === 'edited' ? { ...result, text: byteOrderMark + result.text } : result;
  }
  const eol = original.includes('\r\n') ? '\r\n' : '\n';
  const text = original === '' || original.endsWith('\n') ? original : `${original}${eol}`;
  const document = parse(text);
  try {
    // In this copy of the data, each alias has its own value. `apply` therefore changes only the value at the path of the edit.
    let wanted: unknown = JSON.parse(JSON.stringify(plainOf(document)));
    const splices = edits.map((edit) => {
      const { splice, apply } = planEdit(edit, { text, eol, document });
      wanted = apply(wanted);
      return splice;
    });
    const edited = applySplices(text, splices);
    if (!isDeepStrictEqual(plainOf(parse(edited)), wanted)) throw new Uneditable(unusualStyle);
    return { kind: 'edited', text: edited };
  } catch (error) {
    if (error instanceof Uneditable) return { kind: 'refused', reason: error.message };
    throw error;
  }
}

const byteOrderMark = '\ufeff';

const unusualStyle = 'it is written in a way that this command cannot edit';

class Uneditable extends Error {}

interface Splice {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

interface Planned {
  readonly splice: Splice;
  /** Applies the edit to the document's data, and returns the data. */
  readonly apply: (data: unknown) => unknown;
}

interface Source {
  readonly text: string;
  readonly eol: string;
  readonly document: ParsedDocument;
}

function planEdit(edit: YamlEdit, source: Source): Planned {
  switch (edit.kind) {
    case 'append': {
      const entries: unknown[] = JSON.parse(JSON.stringify(edit.entries));
      return {
        splice: spliceOfAppended(edit.path, entries, source),
        apply(data) {
          if (edit.path.length === 0 && data === null) return entries;
          partOf<unknown[]>(data, edit.path).push(...entries);
          return data;
        },
      };
    }
    case 'set': {
      const map = mappingAt(source.document, edit.path);
      const pair = fieldOf(map, edit.name);
      const value: unknown = JSON.parse(JSON.stringify(edit.value));
      const splice =
        pair === undefined
          ? spliceOfNewField({ ...edit, value }, map, source)
          : spliceOfValue(pair, value, source);
      return { splice, apply: (data) => assign(data, edit.path, edit.name, value) };
    }
    case 'remove': {
      const map = mappingAt(source.document, edit.path);
      const pair = fieldOf(map, edit.name);
      if (pair === undefined) throw new Uneditable(`there is no \`${edit.name}\` to remove`);
      const removed = spliceOfRemoved(pair, map, source);
      if (removed === undefined && edit.or === undefined)
        throw new Uneditable(`its \`${edit.name}\` shares a line with other text`);
      const [splice, value] = removed ? [removed] : [spliceOfValue(pair, edit.or, source), edit.or];
      return { splice, apply: (data) => assign(data, edit.path, edit.name, value) };
    }
    default:
      return edit satisfies never;
  }
}

function spliceOfAppended(path: Path, entries: readonly unknown[], { text, eol, document }: Source): Splice {
  const list = path.length === 0 ? document.contents : document.getIn(path, true);
  if (path.length === 0 && list === null) {
    return { from: text.length, to: text.length, insert: renderBlock(entries, 0, eol) };
  }
  if (!isSeq(list) || !list.range) throw new Uneditable('there is no list to which the entry could be added');
  const [start, end] = list.range;
  if (list.flow) {
    const last = list.items.at(-1);
    const from = last === undefined ? text.lastIndexOf(']', end) : endOf(last);
    const insert = entries.map((entry) => stringify(entry, { collectionStyle: 'flow', lineWidth: 0 }).trim());
    return { from, to: from, insert: `${last === undefined ? '' : ', '}${insert.join(', ')}` };
  }
  const indent = start - lineStartOf(text, start);
  const from = endOfEntries(text, end, indent);
  return { from, to: from, insert: renderBlock(entries, indent, eol) };
}

/**
 * Returns the offset at which the last line of a list ends. The parser's range of a list also covers comments below the list. A comment
 * that is indented deeper than the list belongs to the last entry.
 */
function endOfEntries(text: string, rangeEnd: number, indent: number): number {
  let end = text.slice(0, rangeEnd).trimEnd().length;
  for (;;) {
    const lineStart = lineStartOf(text, end);
    const line = text.slice(lineStart, endOfLine(text, end));
    const content = line.trimStart();
    const isOfLast = content !== '' && !(content.startsWith('#') && line.length - content.length <= indent);
    if (isOfLast) return lineStart + line.length;
    end = lineStart - 1;
  }
}

function renderBlock(entries: readonly unknown[], indent: number, eol: string): string {
  const margin = ' '.repeat(indent);
  return stringify(entries, { lineWidth: 0 })
    .replace(/^(?=.)/gm, margin)
    .replaceAll('\n', eol);
}

function spliceOfNewField(
  { name, value, after }: Extract<YamlEdit, { kind: 'set' }>,
  map: YAMLMap,
  { text, eol }: Source,
): Splice {
  const sibling = fieldOf(map, after);
  if (sibling === undefined) throw new Uneditable(`there is no \`${after}\` to add \`${name}\` to`);
  const field = `${name}: ${rendered(value)}`;
  if (map.flow) {
    const from = endOf(sibling.value);
    return { from, to: from, insert: `, ${field}` };
  }
  const start = startOf(sibling.key);
  // The dash of a list entry may precede the name of the field, as in `- id`.
  const margin = text.slice(lineStartOf(text, start), start).replace(/\S/g, ' ');
  const from = endOfLine(text, endOf(sibling.value));
  return { from, to: from, insert: `${margin}${field}${eol}` };
}

/** On one line. */
function rendered(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim();
}

function spliceOfValue({ value }: Pair, next: unknown, { text }: Source): Splice {
  // An edit of an anchored value would also change every alias (`*name`) of it.
  if (isScalar(value) && value.anchor !== undefined)
    throw new Uneditable(`the value \`&${value.anchor}\` may be used elsewhere too`);
  const from = startOf(value);
  const to = endOfField(value, text);
  const quote = isScalar(value) ? /^["']/.exec(text.slice(from, to))?.[0] : undefined;
  const isAsBefore = quote !== undefined && typeof next === 'string' && !/["'\\]/.test(next);
  return { from, to, insert: isAsBefore ? quote + next + quote : rendered(next) };
}

/** The parser's range of a list or mapping also covers the line breaks and comments below it. */
function endOfField(value: unknown, text: string): number {
  const [start, end] = rangeOf(value);
  if (!(isSeq(value) || isMap(value)) || value.flow) return end;
  const block = text.slice(start, endOfEntries(text, end, start - lineStartOf(text, start)));
  return start + block.trimEnd().length;
}

/** Returns undefined if the field shares its line with other text. */
function spliceOfRemoved(pair: Pair, map: YAMLMap, { text }: Source): Splice | undefined {
  const [start, end] = [startOf(pair.key), endOfField(pair.value, text)];
  if (map.flow) {
    const before = map.items[map.items.indexOf(pair) - 1];
    if (before === undefined) return undefined;
    const from = endOf(before.value);
    return /^\s*,\s*$/.test(text.slice(from, start)) ? { from, to: end, insert: '' } : undefined;
  }
  const [from, to] = [lineStartOf(text, start), endOfLine(text, end)];
  const isAlone = text.slice(from, start).trim() === '' && text.slice(end, to).trim() === '';
  return isAlone ? { from, to, insert: '' } : undefined;
}

function applySplices(text: string, splices: readonly Splice[]): string {
  let edited = '';
  let at = 0;
  for (const { from, to, insert } of splices.toSorted((a, b) => a.from - b.from)) {
    edited += text.slice(at, from) + insert;
    at = to;
  }
  return edited + text.slice(at);
}

function parse(text: string): ParsedDocument {
  return parseDocument(text, { prettyErrors: false, stringKeys: true, uniqueKeys: false });
}

function plainOf(document: ParsedDocument): unknown {
  const plain = document.errors.length === 0 ? toPlain(document, configSizes.aliasedValuesMax) : undefined;
  if (plain !== undefined) return plain.value;
  throw new Uneditable(unusualStyle);
}

function mappingAt(document: ParsedDocument, path: Path): YAMLMap {
  const map = document.getIn(path, true);
  if (!isMap(map)) throw new Uneditable('it is an alias of a mapping elsewhere (`*name`)');
  return map;
}

function fieldOf(map: YAMLMap, name: string): Pair | undefined {
  return map.items.find(({ key }) => isScalar(key) && key.value === name);
}

function partOf<Part>(data: unknown, path: Path): Part {
  return path.reduce<unknown>((part, step) => Object(part)[step], data) as Part;
}

function assign(data: unknown, path: Path, name: string, value?: unknown): unknown {
  const map = partOf<Record<string, unknown>>(data, path);
  if (value === undefined) delete map[name];
  else map[name] = value;
  return data;
}

function startOf(node: unknown): number {
  return rangeOf(node)[0];
}

function endOf(node: unknown): number {
  return rangeOf(node)[1];
}

function rangeOf(node: unknown): readonly [number, number, number] {
  const range = (node as Node | null | undefined)?.range;
  if (!range) throw new Uneditable('a part of it has no value');
  return range;
}

function lineStartOf(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1;
}

/** Returns the offset after the line break. Every line of the text has a line break. */
function endOfLine(text: string, offset: number): number {
  return text.indexOf('\n', offset) + 1;
}
