import { type Alias, type Document, isAlias, isMap, isNode, isScalar, isSeq, type ParsedNode } from 'yaml';

export type ParsedDocument = Document.Parsed<ParsedNode>;

/** The value that an anchor names. */
interface Anchored {
  readonly value: unknown;
  /** The number of values in it, including the values that its aliases expand to. */
  readonly count: number;
}

/**
 * Converts a document to plain data in one pass. The library's own `toJS` searches all anchors for each alias, so a file with
 * 100,000 anchors and aliases would take minutes.
 *
 * @param aliasedMax the total number of values that the document's aliases may expand to
 * @returns undefined if the document has values without a plain form, or too many aliases
 */
export function toPlain(
  document: ParsedDocument,
  aliasedMax: number,
): { readonly value: unknown } | undefined {
  const anchors = new Map<string, Anchored>();
  let count = 0;
  let aliased = 0;

  function convert(node: unknown): unknown {
    // A field without a value, as in `{ a }`.
    if (!isNode(node)) return null;
    if (isAlias(node)) return resolve(node);
    const countBefore = count;
    const { anchor } = node;
    // An anchor is not defined inside its own node, so that a value cannot contain itself.
    if (anchor !== undefined) anchors.delete(anchor);
    count += 1;
    const value = convertUnnamed(node);
    if (anchor !== undefined) anchors.set(anchor, { value, count: count - countBefore });
    return value;
  }

  function convertUnnamed(node: unknown): unknown {
    if (isMap(node)) {
      return Object.fromEntries(
        node.items.map(({ key, value }) => [String(convert(key) ?? ''), convert(value)]),
      );
    }
    if (isSeq(node)) return node.items.map(convert);
    if (isScalar(node) && isPlainScalar(node.value)) return node.value;
    // Other kinds of values, such as dates and bytes, occur only with a YAML tag.
    throw new Inconvertible();
  }

  function resolve(alias: Alias): unknown {
    const target = anchors.get(alias.source);
    aliased += target?.count ?? 0;
    count += target?.count ?? 0;
    if (target === undefined || aliased > aliasedMax) throw new Inconvertible();
    return target.value;
  }

  try {
    return { value: convert(document.contents) };
  } catch (error) {
    // A document that is nested too deeply ends in a `RangeError`.
    if (error instanceof Inconvertible || error instanceof RangeError) return undefined;
    throw error;
  }
}

class Inconvertible extends Error {}

function isPlainScalar(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}
