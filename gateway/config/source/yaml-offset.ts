import { EVENT_ID, type Event, getScalarValue } from 'js-yaml';
import { type AliasTargets, isEmpty, isMergeKey, offsetOfEvent } from './read-events.ts';

/** Field names and list indexes, starting at the root. */
export type YamlPath = readonly PropertyKey[];

/** Of a field. A list entry has only a value. */
export type YamlPart = 'value' | 'name';

/**
 * The character offset of a part. A missing part has the offset of the nearest part around it: the name of the enclosing field, or the
 * start of the enclosing list entry.
 */
export type OffsetOf = (path: YamlPath, part: YamlPart) => number;

/** A list entry has no key. */
interface Member {
  /** The index of the name's event. */
  readonly key: number | undefined;
  /** The index of the value's first event. */
  readonly value: number;
  /** The dash of a list entry without text. Only a list without brackets has such an entry. */
  readonly mark?: number;
}

/**
 * A mapping or list is indexed at its first search, because it may have a million members. A field that a merge key adds has the offset at
 * which it is written.
 */
export function createOffsetOf(text: string, events: readonly Event[], targets: AliasTargets): OffsetOf {
  const indexes = new Map<number, ReadonlyMap<PropertyKey, Member>>();

  function membersAt(start: number): ReadonlyMap<PropertyKey, Member> {
    const at = targets.get(start) ?? start;
    const index = indexes.get(at) ?? indexMembers(at);
    indexes.set(at, index);
    return index;
  }

  /** A value of any other kind has no members. */
  function indexMembers(start: number): ReadonlyMap<PropertyKey, Member> {
    const members = new Map<PropertyKey, Member>();
    const isMapping = events[start]?.type === EVENT_ID.MAPPING;
    if (!isMapping && events[start]?.type !== EVENT_ID.SEQUENCE) return members;
    const merges: number[] = [];
    let markFrom = offsetOfEvent(text, events[start]);
    for (let at = start + 1; at < events.length && events[at]?.type !== EVENT_ID.POP; ) {
      const key = isMapping ? at++ : undefined;
      if (key !== undefined && isMerge(key)) merges.push(at);
      else if (key !== undefined) members.set(nameAt(key), { key, value: at });
      else if (isEmpty(events[at])) {
        const mark = markFrom + text.slice(markFrom).search(/(?<=^[ -]*)-(?=\s|$)|$(?![\s\S])/m);
        members.set(members.size, { key, value: at, mark });
        markFrom = mark + 1;
      } else members.set(members.size, { key, value: at });
      const end = endOfValue(events, at);
      if (!isMapping) markFrom = Math.max(markFrom, endOfText(events.slice(at, end)));
      at = end;
    }
    for (const merge of merges) {
      const isList = events[targets.get(merge) ?? merge]?.type === EVENT_ID.SEQUENCE;
      const from = isList ? [...membersAt(merge).values()].map(({ value }) => value) : [merge];
      for (const [name, member] of from.flatMap((one) => [...membersAt(one)])) {
        if (!members.has(name)) members.set(name, member);
      }
    }
    return members;
  }

  function isMerge(at: number): boolean {
    const event = events[at];
    return event?.type === EVENT_ID.SCALAR && isMergeKey(text, event);
  }

  function nameAt(at: number): string {
    const event = events[targets.get(at) ?? at];
    return event?.type === EVENT_ID.SCALAR && !isEmpty(event) ? getScalarValue(text, event) : '';
  }

  return (path, part) => {
    let member: Member = { key: undefined, value: 1 };
    let wanted = part;
    for (const step of path) {
      const next = membersAt(member.value).get(step);
      if (next === undefined) {
        wanted = 'name';
        break;
      }
      member = next;
    }
    const { key, value, mark } = member;
    if (mark !== undefined) return mark;
    // A report about an empty value points to the name of its field.
    const isName = key !== undefined && (wanted === 'name' || isEmpty(events[value]));
    return offsetOfEvent(text, events[isName ? key : value]);
  };
}

function endOfText(events: readonly Event[]): number {
  return events.reduce((end, event) => (event.type === EVENT_ID.SCALAR ? event.valueEnd : end), 0);
}

/** The index of the event after a value. */
function endOfValue(events: readonly Event[], start: number): number {
  let depth = 0;
  for (let at = start; at < events.length; at++) {
    const type = events[at]?.type;
    if (type === EVENT_ID.MAPPING || type === EVENT_ID.SEQUENCE) depth += 1;
    else if (type === EVENT_ID.POP) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return events.length;
}
