import {
  type AliasEvent,
  COLLECTION_STYLE,
  EVENT_ID,
  type Event,
  getScalarValue,
  type MappingEvent,
  SCALAR_STYLE,
  type ScalarEvent,
  type SequenceEvent,
} from 'js-yaml';
import { isMapping, type Mapping } from '../../shared/structures/plain-data.ts';
import type { Substituted } from './substitute-variables.ts';

/** @param path the names of the fields around the text, without the indexes of lists */
export type Substitute = (text: string, path: readonly string[]) => Substituted;

/** For the index of an alias event, the index of the event that the alias stands for. */
export type AliasTargets = ReadonlyMap<number, number>;

export type ReadDocument =
  | { readonly kind: 'read'; readonly value: unknown; readonly targets: AliasTargets }
  | { readonly kind: 'failed'; readonly offset: number; readonly reason: string };

/** Faults that do not prevent reading the rest of the document. */
export interface NoteFaults {
  /** The last field counts. */
  duplicate(offset: number, firstOffset: number): void;
  reservedName(offset: number): void;
  unfilled(offset: number, failure: Extract<Substituted, { readonly kind: 'failed' }>): void;
}

interface Anchored {
  readonly index: number;
  readonly value: unknown;
  /** Includes the values that aliases expand to. */
  readonly count: number;
}

/**
 * Makes the data of one document from the events of `js-yaml`, by the core schema of YAML 1.2. Every field name is a text. The merge key
 * `<<` adds the fields of one or several other mappings (https://yaml.org/type/merge.html).
 *
 * @param aliasedMax values that all aliases and merge keys together may stand for
 */
export function readEvents(
  text: string,
  events: readonly Event[],
  {
    substitute,
    aliasedMax,
    note,
  }: {
    readonly substitute: Substitute | undefined;
    readonly aliasedMax: number;
    readonly note: NoteFaults;
  },
): ReadDocument {
  const anchors = new Map<string, Anchored>();
  const targets = new Map<number, number>();
  const names: string[] = [];
  // The first event is the start of the document.
  let at = 1;
  let count = 0;
  let aliased = 0;

  function isAtEnd(): boolean {
    if (events[at]?.type !== EVENT_ID.POP) return false;
    at += 1;
    return true;
  }

  function readValue(): unknown {
    const index = at++;
    const event = events[index];
    if (event === undefined || event.type === EVENT_ID.POP || event.type === EVENT_ID.DOCUMENT) return null;
    if (event.type === EVENT_ID.ALIAS) return resolve(event, index).value;
    const countBefore = count;
    const anchor = anchorOf(event);
    // A value cannot contain itself.
    if (anchor !== undefined) anchors.delete(anchor);
    count += 1;
    const value = event.type === EVENT_ID.SCALAR ? readScalar(event) : readCollection(event);
    if (anchor !== undefined) anchors.set(anchor, { index, value, count: count - countBefore });
    return value;
  }

  function anchorOf({ anchorStart, anchorEnd }: MappingEvent | SequenceEvent | ScalarEvent) {
    return anchorStart === absent ? undefined : text.slice(anchorStart, anchorEnd);
  }

  function resolve(event: AliasEvent, index: number): Anchored {
    const target = anchors.get(text.slice(event.anchorStart, event.anchorEnd));
    aliased += target?.count ?? 0;
    count += target?.count ?? 0;
    if (target === undefined || aliased > aliasedMax) {
      const reason = 'the aliases (`*name`) stand for too many values or for none; write the values out';
      throw new Unreadable(reason, event.anchorStart - 1);
    }
    targets.set(index, target.index);
    return target;
  }

  function readCollection(event: MappingEvent | SequenceEvent): unknown {
    const isOfMapping = event.type === EVENT_ID.MAPPING;
    const tag = tagOf(event);
    if (tag !== undefined && tag !== (isOfMapping ? 'map' : 'seq'))
      throw new Unreadable(removeTag, event.start);
    return isOfMapping ? readMapping(event.style === COLLECTION_STYLE.BLOCK) : readSequence();
  }

  function readSequence(): unknown {
    const list: unknown[] = [];
    while (!isAtEnd()) list.push(readValue());
    return list;
  }

  function readMapping(isBlock: boolean): unknown {
    const mapping: Record<string, unknown> = {};
    const firstOffsets = new Map<string, number>();
    const merged: unknown[] = [];
    const first = at;
    while (!isAtEnd()) {
      const key = events[at];
      const offset = offsetOfEvent(text, key);
      if (isBlock && at > first && !startsLine(key, offset)) {
        throw new Unreadable('this is not valid YAML: a field must begin its line', offset);
      }
      const name = readName();
      const isMerge = key?.type === EVENT_ID.SCALAR && isMergeKey(text, key);
      names.push(name);
      const valueOffset = offsetOfEvent(text, events[at]);
      const value = readValue();
      names.pop();
      if (isMerge) {
        merged.push(...mappingsIn(value, valueOffset));
        continue;
      }
      const firstOffset = firstOffsets.get(name);
      if (firstOffset !== undefined) note.duplicate(offset, firstOffset);
      else if (name === '__proto__') note.reservedName(offset);
      else firstOffsets.set(name, offset);
      // An assignment to `__proto__` would create no field.
      if (name !== '__proto__') mapping[name] = value;
    }
    for (const more of merged) {
      for (const [name, value] of Object.entries(more as Mapping)) {
        if (!Object.hasOwn(mapping, name)) mapping[name] = value;
      }
    }
    return mapping;
  }

  /** Whether only spaces, a `?`, an anchor or a tag precede a field name on its line. `js-yaml` accepts a name behind a value. */
  function startsLine(key: Event | undefined, offset: number): boolean {
    const hasProperty = key?.type === EVENT_ID.SCALAR && Math.max(key.anchorStart, key.tagStart) !== absent;
    const start = text.lastIndexOf('\n', offset - 1) + 1;
    return hasProperty || /^[ \t]*(?:\?[ \t]+)?$/.test(text.slice(start, offset));
  }

  /** The mappings whose fields a merge key adds. Each field counts as a value of an alias. */
  function mappingsIn(value: unknown, offset: number): readonly Mapping[] {
    const all: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (!all.every(isMapping)) {
      throw new Unreadable('a merge key `<<` needs a mapping, or a list of mappings', offset);
    }
    for (const one of all) aliased += Object.keys(one).length;
    if (aliased > aliasedMax) {
      throw new Unreadable('the merge keys (`<<`) add too many fields; write the fields out', offset);
    }
    return all;
  }

  function readName(): string {
    const index = at++;
    const event = events[index];
    if (event?.type === EVENT_ID.ALIAS) {
      const { value } = resolve(event, index);
      if (typeof value === 'string') return value;
    }
    if (event?.type !== EVENT_ID.SCALAR) {
      throw new Unreadable(
        'this is not valid YAML: a field name must be plain text',
        offsetOfEvent(text, event),
      );
    }
    const anchor = anchorOf(event);
    const name = isEmpty(event) ? '' : getScalarValue(text, event);
    if (anchor !== undefined) anchors.set(anchor, { index, value: name, count: 1 });
    return name;
  }

  function readScalar(event: ScalarEvent): unknown {
    const written = isEmpty(event) ? '' : getScalarValue(text, event);
    if (event.style === SCALAR_STYLE.DOUBLE_QUOTED && !event.fast) {
      const fault = escapeFaults.find(([pattern]) =>
        pattern.test(text.slice(event.valueStart, event.valueEnd)),
      );
      if (fault !== undefined)
        throw new Unreadable(`this is not valid YAML: ${fault[1]}`, event.valueStart - 1);
    }
    const tag = tagOf(event);
    const isPlain = tag === undefined ? event.style === SCALAR_STYLE.PLAIN : tag !== 'str' && tag !== '';
    if (substitute !== undefined && written.includes('${')) {
      const substituted = substitute(written, names);
      if (substituted.kind === 'filled') return isPlain ? resolveFilled(substituted.text) : substituted.text;
      note.unfilled(offsetOfEvent(text, event), substituted);
      return written;
    }
    const value = isPlain ? resolvePlain(written) : written;
    if (tag !== undefined && !isOfTag(tag, value))
      throw new Unreadable(removeTag, offsetOfEvent(text, event));
    return value;
  }

  /** The name of a tag of the core schema, such as `str`; empty for the tag `!`. Other tags have their whole text. */
  function tagOf({ tagStart, tagEnd }: MappingEvent | SequenceEvent | ScalarEvent): string | undefined {
    if (tagStart === absent) return undefined;
    const tag = text.slice(tagStart, tagEnd);
    return tag === '!' ? '' : tag.replace(/^!!|^!<tag:yaml\.org,2002:(\w+)>$/, '$1');
  }

  try {
    const value = readValue();
    const second = events.findIndex(({ type }, index) => index > 0 && type === EVENT_ID.DOCUMENT);
    return second === -1 ? { kind: 'read', value, targets } : severalDocuments(text);
  } catch (error) {
    if (error instanceof Unreadable) return { kind: 'failed', offset: error.offset, reason: error.message };
    throw error;
  }
}

/** No reader accepts them, or readers understand them in different ways. */
const escapeFaults: readonly (readonly [pattern: RegExp, fault: string])[] = [
  [/(?<!\\)(?:\\\\)*\\U(?!000|0010)/, 'an escape `\\U` is no character'],
  [/(?<!\\)(?:\\\\)*\\\r?\n[ \t]*\r?\n/, 'a blank line may not follow an escaped line break'],
];

const removeTag = 'this is not valid YAML: remove the `!` tag';

function severalDocuments(text: string): ReadDocument {
  const [first] = /^---(?=\s)/.exec(text) ?? [''];
  const start = text.slice(first.length).search(/^(?:---|\.\.\.)(?=\s|$)/m) + first.length;
  const reason = 'this is not valid YAML: a file holds one document; remove `---` and what follows';
  return { kind: 'failed', offset: Math.max(0, start), reason };
}

class Unreadable extends Error {
  readonly offset: number;

  constructor(reason: string, offset: number) {
    super(reason);
    this.offset = offset;
  }
}

function isOfTag(tag: string, value: unknown): boolean {
  switch (tag) {
    case '':
    case 'str':
      return typeof value === 'string';
    case 'int':
      return Number.isInteger(value);
    case 'float':
      return typeof value === 'number';
    case 'bool':
      return typeof value === 'boolean';
    case 'null':
      return value === null;
    default:
      return false;
  }
}

export function isMergeKey(text: string, { style, valueStart, valueEnd }: ScalarEvent): boolean {
  return style === SCALAR_STYLE.PLAIN && text.slice(valueStart, valueEnd) === '<<';
}

/** After its anchor and its tag. */
export function offsetOfEvent(text: string, event: Event | undefined): number {
  switch (event?.type) {
    case EVENT_ID.MAPPING:
    case EVENT_ID.SEQUENCE:
      return event.start;
    case EVENT_ID.ALIAS:
      return event.anchorStart - 1;
    case EVENT_ID.SCALAR:
      return offsetOfScalar(text, event);
    default:
      return 0;
  }
}

function offsetOfScalar(text: string, { style, valueStart, anchorEnd, tagEnd }: ScalarEvent): number {
  if (valueStart === absent) return Math.max(anchorEnd, tagEnd, 0);
  if (style === SCALAR_STYLE.PLAIN) return valueStart;
  if (style === SCALAR_STYLE.SINGLE_QUOTED || style === SCALAR_STYLE.DOUBLE_QUOTED) return valueStart - 1;
  // The value of a block scalar starts on the line after its `|` or `>`.
  const lineStart = text.lastIndexOf('\n', valueStart - 2) + 1;
  const header = /[|>][-+0-9]*[ \t]*(?:#.*)?\r?\n?$/.exec(text.slice(lineStart, valueStart));
  return lineStart + (header?.index ?? 0);
}

/** As in `a:`. */
export function isEmpty(event: Event | undefined): boolean {
  return event?.type === EVENT_ID.SCALAR && event.valueStart === absent;
}

/** An absent offset in the events of `js-yaml`. */
const absent = -1;

/** As YAML would convert the text of the variable, if it looks like a number or boolean. */
function resolveFilled(text: string): string | number | boolean {
  if (/^[-+]?\d+(\.\d+)?$/.test(text)) return Number(text);
  return text === 'true' || text === 'false' ? text === 'true' : text;
}

/** By the core schema of YAML 1.2 (§10.3.2). */
function resolvePlain(text: string): unknown {
  if (!mayBeNoText.test(text)) return text;
  if (/^(?:~|[Nn]ull|NULL)?$/.test(text)) return null;
  if (/^(?:[Tt]rue|TRUE)$/.test(text)) return true;
  if (/^(?:[Ff]alse|FALSE)$/.test(text)) return false;
  if (/^[-+]?[0-9]+$/.test(text)) return Number.parseInt(text, 10);
  if (/^0o[0-7]+$/.test(text)) return Number.parseInt(text.slice(2), 8);
  if (/^0x[0-9a-fA-F]+$/.test(text)) return Number.parseInt(text.slice(2), 16);
  if (/^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)$/.test(text)) return Number.parseFloat(text);
  if (/^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+$/.test(text)) return Number.parseFloat(text);
  if (/^\.(?:nan|NaN|NAN)$/.test(text)) return Number.NaN;
  if (/^[-+]?\.(?:inf|Inf|INF)$/.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return text;
}

/** Every scalar that is a number, a boolean or null, and few others. */
const mayBeNoText = /^(?:$|~|[-+.0-9]|[Nn](?:ull|ULL)|[Tt]rue|TRUE|[Ff]alse|FALSE)/;
