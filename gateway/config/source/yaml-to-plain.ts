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

/** A document's data and the node that each alias stands for; or the reason why there is no data, and its offset. */
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
  /** The number of values in it, those behind aliases included. */
  readonly count: number;
}

/**
 * Makes plain data of a document in one pass. The library's own `toJS` looks for the anchor of each alias among all
 * anchors: a file with 100,000 of both would take minutes.
 *
 * @param aliasedMax the values that all aliases of the document may stand for together
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
    // An anchor is not known inside the node that it names, so that no value contains itself.
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
        // An assignment to `__proto__` makes no field. `parseYaml` reports the name.
        if (name !== '__proto__') mapping[name] = plain;
      }
      return mapping;
    }
    if (isSeq(node)) return node.items.map(convert);
    if (isScalar(node) && isPlainScalar(node.value)) return node.value;
    // Only a tag makes other values: dates, bytes.
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
