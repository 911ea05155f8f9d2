import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type ParsedNode } from 'yaml';

export type ParsedDocument = Document.Parsed<ParsedNode>;

/** Steps from a document's root: field names and list indexes. */
export type YamlPath = readonly PropertyKey[];

/** A field has a name and a value; an entry of a list has a value only. */
export type YamlPart = 'value' | 'name';

/**
 * The character offset of what a path leads to. Where the path goes on but the document does not (a missing field),
 * it is that of the nearest part around it: the name of the field that holds it, or the start of its list entry.
 */
export function offsetOf(document: ParsedDocument, path: YamlPath, part: YamlPart): number {
  let node: unknown = document.contents;
  let nameOffset: number | undefined;
  for (const step of path) {
    const collection = isAlias(node) ? node.resolve(document) : node;
    if (isMap(collection)) {
      const pair = collection.items.findLast(({ key }) => isScalar(key) && key.value === step);
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
}

function startOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

/** An empty value stands nowhere; its field's name is what can be seen. */
function isEmpty(node: unknown): boolean {
  return !isNode(node) || !node.range || node.range[0] === node.range[1];
}
