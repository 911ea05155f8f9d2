import { EVENT_ID, type Event, SCALAR_STYLE } from 'js-yaml';
import { configSizes } from '../config-sizes.ts';
import { countUpTo } from '../problems/text-places.ts';

/** Lines with a closing bracket have one more space, so that `js-yaml` accepts them. */
export interface IndentedText {
  readonly text: string;
  readonly events: readonly Event[];
  /** Converts an offset to the offset in the written text. */
  readonly writtenOffset: (offset: number) => number;
}

/**
 * Parses a text whose lines may begin with a closing bracket in the column of the field that has the bracket. By the grammar of YAML, such
 * a line needs one more space (§7.4), but the form is common:
 *
 *     example: {
 *       "id": 1
 *     }
 *
 * In texts after `|` and `>`, a space at the start of a line would be part of the value, so their lines stay unchanged.
 *
 * @returns undefined if this takes more than `configSizes.bracketRoundsMax` attempts
 */
export function parseIndented(
  written: string,
  parse: (text: string) => readonly Event[],
): IndentedText | undefined {
  let offsets: readonly number[] = Array.from(
    written.matchAll(/^ *(?=[}\]])/gm),
    ({ 0: indent, index }) => index + indent.length,
  );
  for (let rounds = 0; rounds < configSizes.bracketRoundsMax; rounds++) {
    const text = withSpaces(written, offsets);
    const events = parse(text);
    const inTexts = offsetsInTexts(events, offsets);
    if (inTexts.size === 0) {
      const spaces = offsets.map((offset, index) => offset + index);
      return { text, events, writtenOffset: (offset) => offset - countUpTo(spaces, offset - 1) };
    }
    offsets = offsets.filter((offset) => !inTexts.has(offset));
  }
  return undefined;
}

function withSpaces(written: string, offsets: readonly number[]): string {
  const parts = offsets.map((offset, index) => written.slice(offsets[index - 1] ?? 0, offset));
  return [...parts, written.slice(offsets.at(-1) ?? 0)].join(' ');
}

/** Offsets at which a space was inserted into a text after `|` or `>`. */
function offsetsInTexts(events: readonly Event[], offsets: readonly number[]): ReadonlySet<number> {
  const found = new Set<number>();
  let next = 0;
  const isBefore = (end: number) => next < offsets.length && (offsets[next] ?? 0) + next < end;
  for (const event of events) {
    if (event.type !== EVENT_ID.SCALAR) continue;
    const { style, valueStart, valueEnd } = event;
    if (style !== SCALAR_STYLE.LITERAL_BLOCK && style !== SCALAR_STYLE.FOLDED_BLOCK) continue;
    while (isBefore(valueStart)) next += 1;
    for (; isBefore(valueEnd); next++) found.add(offsets[next] ?? 0);
  }
  return found;
}
