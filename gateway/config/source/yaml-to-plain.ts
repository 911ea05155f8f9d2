import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Node,
  type ParsedNode,
} from 'yaml';

export type ParsedDocument = Document.Parsed<ParsedNode>;

/** A document's data and the node of each alias, or the reason and the offset of a failure. */
export type Plain =
  | { readonly kind: 'plain'; readonly value: unknown; readonly targets: AliasTargets }
  | { readonly kind: 'failed'; readonly reason: string; readonly offset: number };

export type AliasTargets = ReadonlyMap<Alias, Node>;

/** A YAML mapping as plain data. */
export type Mapping = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The node that an anchor names. */
interface Anchored {
  readonly node: Node;
  readonly value: unknown;
  /** The number of values in the node, including the values that its aliases expand to. */
  readonly count: number;
}

/**
 * Converts a document to plain data in one pass. The library's own `toJS` searches all anchors for each alias, so a file with
 * 100,000 anchors and aliases would take minutes.
 *
 * @param aliasedMax the total number of values that the document's aliases may expand to
 */
export function toPlain(document: ParsedDocument, aliasedMax: number): Plain {
  const anchors = new Map<string, Anchored>();
  const targets = new Map<Alias, Node>();
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
    if (anchor !== undefined) anchors.set(anchor, { node, value, count: count - countBefore });
    return value;
  }

  function convertUnnamed(node: Node): unknown {
    if (isMap(node)) {
      const mapping: Record<string, unknown> = {};
      for (const { key, value } of node.items) {
        const name = String(convert(key) ?? '');
        const plain = convert(value);
        // An assignment to `__proto__` would not create a field. `parseYaml` reports a field with the name `__proto__`.
        if (name !== '__proto__') mapping[name] = plain;
      }
      return mapping;
    }
    if (isSeq(node)) return node.items.map(convert);
    if (isScalar(node) && isPlainScalar(node.value)) return node.value;
    // Other kinds of values, such as dates and bytes, occur only with a YAML tag.
    throw new Inconvertible('this is not valid YAML: remove the `!` tag', node);
  }

  function resolve(alias: Alias): unknown {
    const target = anchors.get(alias.source);
    aliased += target?.count ?? 0;
    count += target?.count ?? 0;
    if (target === undefined || aliased > aliasedMax) {
      const reason = 'the aliases (`*name`) stand for too many values or for none; write the values out';
      throw new Inconvertible(reason, alias);
    }
    targets.set(alias, target.node);
    return target.value;
  }

  try {
    return { kind: 'plain', value: convert(document.contents), targets };
  } catch (error) {
    if (error instanceof Inconvertible) {
      return { kind: 'failed', reason: error.message, offset: error.node.range?.[0] ?? 0 };
    }
    if (error instanceof RangeError)
      return { kind: 'failed', reason: 'this is nested too deeply', offset: 0 };
    throw error;
  }
}

class Inconvertible extends Error {
  readonly node: Node;

  constructor(reason: string, node: Node) {
    super(reason);
    this.node = node;
  }
}

function isPlainScalar(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}
