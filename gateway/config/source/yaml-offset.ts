import { isAlias, isMap, isNode, isScalar, isSeq, type Pair, type YAMLMap } from 'yaml';
import type { AliasTargets, ParsedDocument } from './yaml-to-plain.ts';

/** The path of a part in a document: field names and list indexes, starting at the root. */
export type YamlPath = readonly PropertyKey[];

/** Which part of a field is meant: its name or its value. A list entry has only a value. */
export type YamlPart = 'value' | 'name';

/**
 * Returns the character offset of the part at a path. A missing part has the offset of the nearest part around it. The nearest
 * part is the name of the enclosing field, or the start of the enclosing list entry.
 */
export type OffsetOf = (path: YamlPath, part: YamlPart) => number;

/** Makes the function that finds offsets. Each mapping is indexed at its first search, because it may have a million fields. */
export function createOffsetOf(document: ParsedDocument, targets: AliasTargets): OffsetOf {
  const indexes = new Map<YAMLMap, ReadonlyMap<unknown, Pair>>();

  function fieldOf(map: YAMLMap, name: PropertyKey): Pair | undefined {
    const index = indexes.get(map) ?? indexFields(map);
    indexes.set(map, index);
    return index.get(name);
  }

  return (path, part) => {
    let node: unknown = document.contents;
    let nameOffset: number | undefined;
    for (const step of path) {
      const collection = isAlias(node) ? targets.get(node) : node;
      if (isMap(collection)) {
        const pair = fieldOf(collection, step);
        if (pair === undefined) return nameOffset ?? startOf(collection);
        nameOffset = startOf(pair.key);
        node = pair.value;
      } else if (isSeq(collection) && typeof step === 'number' && step < collection.items.length) {
        nameOffset = undefined;
        node = collection.items[step];
      } else {
        return nameOffset ?? startOf(node);
      }
    }
    if (nameOffset !== undefined && (part === 'name' || isEmpty(node))) return nameOffset;
    return startOf(node);
  };
}

/**
 * Maps each name to its field. If several fields have the same name, the map contains the last of them. The parser also uses the last
 * field.
 */
function indexFields(map: YAMLMap): ReadonlyMap<unknown, Pair> {
  return new Map(map.items.flatMap((pair) => (isScalar(pair.key) ? [[pair.key.value, pair]] : [])));
}

function startOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

/** Whether a value is empty. If the value of a field is empty, a report points to the name of the field. */
function isEmpty(node: unknown): boolean {
  return !isNode(node) || !node.range || node.range[0] === node.range[1];
}
