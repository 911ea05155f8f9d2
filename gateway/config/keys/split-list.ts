/** Byte positions of entries in a file. */
export interface SplitList {
  readonly bytes: Buffer;
  /** The first byte of each entry, where the previous entry ends, and the end of the file. */
  readonly starts: Uint32Array;
  /** The first line of each entry, from 1. */
  readonly lines: Uint32Array;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const blank = 0x20;
const hash = 0x23;
const dash = 0x2d;

/**
 * Splits an unindented block list of YAML. Each entry begins with a line that starts with `- `; all other lines are indented, empty or
 * comments. Each entry can then be parsed separately, unless it is invalid or uses an anchor of another entry.
 *
 * @returns undefined for any other document, for example with directives or `---`, an indented list, a list in brackets, or an empty
 * document
 */
export function splitList(bytes: Buffer): SplitList | undefined {
  const starts: number[] = [];
  const lines: number[] = [];
  let line = 0;
  for (let start = 0; start < bytes.length; ) {
    line += 1;
    switch (bytes[start]) {
      case dash:
        if (bytes[start + 1] !== blank) return undefined;
        starts.push(start);
        lines.push(line);
        break;
      case blank:
        if (starts.length === 0) return undefined;
        break;
      case carriageReturn:
        if (bytes[start + 1] !== lineFeed) return undefined;
        break;
      case hash:
      case lineFeed:
        break;
      default:
        return undefined;
    }
    const lineBreak = bytes.indexOf(lineFeed, start);
    start = lineBreak === -1 ? bytes.length : lineBreak + 1;
  }
  if (starts.length === 0 || /\r(?!\n)/.test(bytes.toString('latin1', 0, starts[0]))) return undefined;
  starts.push(bytes.length);
  return { bytes, starts: Uint32Array.from(starts), lines: Uint32Array.from(lines) };
}

/** With comments up to the next entry. */
export function entryText({ bytes, starts }: SplitList, index: number): string {
  return bytes.toString('utf8', starts[index], starts[index + 1]);
}

export interface ListDifference {
  /** Indexes in the old list, and in the new list. */
  readonly removed: readonly number[];
  readonly added: readonly number[];
  /** For each entry of the old list: its index in the new list, or `gone`. */
  readonly now: Uint32Array;
}

export const gone = 0xffff_ffff;

/** By the bytes of entries. An entry that has only moved is the same entry. */
export function compareLists(before: SplitList, after: SplitList): ListDifference {
  const [countBefore, countAfter] = [before.lines.length, after.lines.length];
  const linesMax = Math.min(countBefore, countAfter);
  let first = 0;
  while (first < linesMax && isSame(before, first, after, first)) first += 1;
  let last = 0;
  while (last < linesMax - first && isSame(before, countBefore - 1 - last, after, countAfter - 1 - last))
    last += 1;

  const now = Uint32Array.from({ length: countBefore }, (_, index) =>
    index < first ? index : index >= countBefore - last ? index - countBefore + countAfter : gone,
  );
  // Entries with the same bytes may be confused. Such a list is invalid anyway, because ids are unique.
  const between = new Map<string, number>();
  for (let index = first; index < countBefore - last; index++) between.set(entryText(before, index), index);
  const added: number[] = [];
  for (let index = first; index < countAfter - last; index++) {
    const text = entryText(after, index);
    const found = between.get(text);
    if (found === undefined) added.push(index);
    else now[found] = index;
    between.delete(text);
  }
  return { removed: [...between.values()], added, now };
}

function isSame(one: SplitList, index: number, other: SplitList, otherIndex: number): boolean {
  const [start = 0, end = 0] = [one.starts[index], one.starts[index + 1]];
  const [otherStart = 0, otherEnd = 0] = [other.starts[otherIndex], other.starts[otherIndex + 1]];
  if (end - start !== otherEnd - otherStart) return false;
  return one.bytes.compare(other.bytes, otherStart, otherEnd, start, end) === 0;
}
