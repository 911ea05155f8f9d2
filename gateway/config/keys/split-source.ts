import type { Place } from '../problems/problem.ts';
import type { ParsedYaml, YamlSource } from '../source/parse-yaml.ts';
import type { YamlPart, YamlPath } from '../source/yaml-offset.ts';
import type { ReadEntry } from './read-entries.ts';
import { entryText, type SplitList } from './split-list.ts';

/**
 * The YAML source of a split list, as a parse of the whole file would give it. An entry is parsed when a report first needs a line and
 * column in it. Undefined if only a parse of the whole file can provide the source.
 */
export function createSplitSource(
  list: SplitList,
  readEntry: ReadEntry,
  parse: (text: string) => ParsedYaml,
): YamlSource | undefined {
  const value: unknown[] = [];
  for (let index = 0; index < list.lines.length; index++) {
    const read = readEntry(entryText(list, index));
    if (read === undefined) return undefined;
    value.push(read.value);
  }
  const parsed = new Map<number, YamlSource>();

  function entryAt(index: number): YamlSource {
    const known = parsed.get(index);
    if (known !== undefined) return known;
    const result = parse(entryText(list, index));
    if (result.kind === 'invalid') throw new Error('an entry that was read cannot be parsed');
    parsed.set(index, result.source);
    return result.source;
  }

  /** The list itself has the line of its first entry. */
  function placeOf(path: YamlPath, part?: YamlPart): Place {
    const [index, ...inEntry] = path;
    if (typeof index !== 'number' || index >= list.lines.length) return { ...placeOf([0]), column: 1 };
    const place = entryAt(index).placeOf([0, ...inEntry], part);
    return { ...place, line: place.line + lineBefore(index) };
  }

  const lineBefore = (index: number) => (list.lines[index] ?? 1) - 1;

  return {
    value,
    placeOf,
    lineOf: (path) => placeOf(path).line,
  };
}
