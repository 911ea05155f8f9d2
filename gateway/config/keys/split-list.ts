/** Where the entries of a list stand in the bytes of a file. */
export interface SplitList {
  readonly bytes: Buffer;
  /** The first byte of each entry, and the end of the file: an entry ends where the next one begins. */
  readonly starts: Uint32Array;
  /** The line on which each entry begins, from 1. */
  readonly lines: Uint32Array;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const blank = 0x20;
const hash = 0x23;
const dash = 0x2d;

/**
 * Splits a YAML document that is a block list without indentation: each entry begins on a line with `- `, and all other lines
 * are indented, empty or comments. Then each entry can be parsed by itself, unless it has to do with others by an anchor or is
 * no YAML. Undefined for any other document: with directives or `---`, an indented list, one in brackets, an empty one.
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

/** The text of an entry, with the comments up to the next one. */
export function entryText({ bytes, starts }: SplitList, index: number): string {
  return bytes.toString('utf8', starts[index], starts[index + 1]);
}

/** What became of the entries of a list. */
export interface ListDifference {
  /** Entries of the list before that are not in the other, and entries of the other that are not in that before. */
  readonly removed: readonly number[];
  readonly added: readonly number[];
  /** For each entry of the list before, which one it is in the other; `gone` for those that were removed. */
  readonly now: Uint32Array;
}

export const gone = 0xffff_ffff;

/** Compares two lists by their bytes. Entries that stand in another order are found again. */
export function compareLists(before: SplitList, after: SplitList): ListDifference {
  const [countBefore, countAfter] = [before.lines.length, after.lines.length];
  const most = Math.min(countBefore, countAfter);
  let first = 0;
  while (first < most && isSame(before, first, after, first)) first += 1;
  let last = 0;
  while (last < most - first && isSame(before, countBefore - 1 - last, after, countAfter - 1 - last))
    last += 1;

  const now = Uint32Array.from({ length: countBefore }, (_, index) =>
    index < first ? index : index >= countBefore - last ? index - countBefore + countAfter : gone,
  );
  // Two entries of the same bytes are not valid, so it does not matter which of them is found.
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
