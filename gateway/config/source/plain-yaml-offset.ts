import { EVENT_ID, type Event, getScalarValue, parseEvents, SCALAR_STYLE, type ScalarEvent } from 'js-yaml';
import type { OffsetOf } from './yaml-offset.ts';

/** The place of a member in the events of `js-yaml`. A list entry has no key. */
interface MemberEvents {
  readonly key: ScalarEvent | undefined;
  /** The index of the value's first event. */
  readonly value: number;
}

/**
 * Makes the function that finds offsets in a text that `parsePlainYaml` accepts. The text is parsed again at the first search, because
 * most documents have no problems. Each mapping and each list is indexed at its first search.
 */
export function createPlainYamlOffsetOf(text: string): OffsetOf {
  let parsed: readonly Event[] | undefined;
  const indexes = new Map<number, ReadonlyMap<PropertyKey, MemberEvents>>();

  return (path, part) => {
    parsed ??= parseEvents(text, parserOptions);
    const events = parsed;

    function membersAt(at: number): ReadonlyMap<PropertyKey, MemberEvents> {
      const index = indexes.get(at) ?? indexMembers(text, events, at);
      indexes.set(at, index);
      return index;
    }

    function offsetOf({ key, value }: MemberEvents, wanted: 'name' | 'value'): number {
      const event = events[value];
      if (key !== undefined && (wanted === 'name' || isEmpty(event))) return offsetOfKey(key);
      return event === undefined ? 0 : offsetOfValue(text, event, key);
    }

    // The first event is the start of the document.
    let at: MemberEvents = { key: undefined, value: 1 };
    for (const step of path) {
      const next = membersAt(at.value).get(step);
      if (next === undefined) return offsetOf(at, 'name');
      at = next;
    }
    return offsetOf(at, part);
  };
}

/** Finds the members of the mapping or list at an index. A value of any other kind has no members. */
function indexMembers(
  text: string,
  events: readonly Event[],
  start: number,
): ReadonlyMap<PropertyKey, MemberEvents> {
  const members = new Map<PropertyKey, MemberEvents>();
  const isMapping = events[start]?.type === EVENT_ID.MAPPING;
  if (!isMapping && events[start]?.type !== EVENT_ID.SEQUENCE) return members;
  let at = start + 1;
  while (at < events.length && events[at]?.type !== EVENT_ID.POP) {
    const event = events[at];
    const key = isMapping && event?.type === EVENT_ID.SCALAR ? event : undefined;
    if (key !== undefined) at += 1;
    members.set(key === undefined ? members.size : getScalarValue(text, key), { key, value: at });
    at = endOfValue(events, at);
  }
  return members;
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

function offsetOfValue(text: string, event: Event, key: ScalarEvent | undefined): number {
  if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE) return event.start;
  if (event.type !== EVENT_ID.SCALAR) return 0;
  const { style, valueStart } = event;
  if (style !== SCALAR_STYLE.LITERAL_BLOCK && style !== SCALAR_STYLE.FOLDED_BLOCK) return offsetOfKey(event);
  // The value of a block scalar starts on the line after its `|` or `>`. A key before this `|` or `>` may contain the same character.
  const lineStart = text.lastIndexOf('\n', valueStart - 2) + 1;
  let at = Math.max(lineStart, key?.valueEnd ?? 0);
  while (at < valueStart && text[at] !== '|' && text[at] !== '>') at += 1;
  return at;
}

/** Returns the offset of a quoted or plain scalar. */
export function offsetOfKey({ style, valueStart }: ScalarEvent): number {
  return style === SCALAR_STYLE.PLAIN ? valueStart : valueStart - 1;
}

/** Whether an event is a value that is not written, as in `a:`. */
export function isEmpty(event: Event | undefined): boolean {
  return event?.type === EVENT_ID.SCALAR && event.valueStart === absent;
}

/** Stands for an absent offset in the events of `js-yaml`. */
export const absent = -1;

/** Options of `js-yaml`, which refuses a deeper text. `yaml` reads a deeper text, or reports that the text is too deep. */
export const parserOptions = { maxDepth: 100 } as const;
