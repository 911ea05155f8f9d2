import { EVENT_ID, type Event, getScalarValue } from 'js-yaml';
import { type AliasTargets, isEmpty, isMergeKey, offsetOfEvent } from './read-events.ts';

/** The path of a part in a document: field names and list indexes, starting at the root. */
export type YamlPath = readonly PropertyKey[];

/** Which part of a field is meant: its name or its value. A list entry has only a value. */
export type YamlPart = 'value' | 'name';

/**
 * Returns the character offset of the part at a path. A missing part has the offset of the nearest part around it. The nearest
 * part is the name of the enclosing field, or the start of the enclosing list entry.
 */
export type OffsetOf = (path: YamlPath, part: YamlPart) => number;

/** The place of a member in the events. A list entry has no key. */
interface Member {
  /** The index of the name's event. */
  readonly key: number | undefined;
  /** The index of the value's first event. */
  readonly value: number;
  /** The offset of the dash of a list entry without text. Only a list without brackets has such an entry. */
  readonly mark?: number;
}

/**
 * Makes the function that finds offsets. Each mapping and each list is indexed at its first search, because it may have a million
 * members. A field that a merge key adds has the offset at which the field is written.
 */
export function createOffsetOf(text: string, events: readonly Event[], targets: AliasTargets): OffsetOf {
  const indexes = new Map<number, ReadonlyMap<PropertyKey, Member>>();

  function membersAt(start: number): ReadonlyMap<PropertyKey, Member> {
    const at = targets.get(start) ?? start;
    const index = indexes.get(at) ?? indexMembers(at);
    indexes.set(at, index);
    return index;
  }

  /** Finds the members of the mapping or list at an index. A value of any other kind has no members. */
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
    // If the value of a field is empty, a report points to the name of the field.
    const isName = key !== undefined && (wanted === 'name' || isEmpty(events[value]));
    return offsetOfEvent(text, events[isName ? key : value]);
  };
}

/** Returns the end of the last text of some events. */
function endOfText(events: readonly Event[]): number {
  return events.reduce((end, event) => (event.type === EVENT_ID.SCALAR ? event.valueEnd : end), 0);
}

/** Returns the index of the event after a value. */
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
