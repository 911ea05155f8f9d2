import { bounds } from '../bounds.ts';

/** The name that was probably meant, or undefined when none is near: at most a third of its letters may differ. */
export function closestName(written: string, names: Iterable<string>): string | undefined {
  let closest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const name of names) {
    const differing = editDistance(written.toLowerCase(), name.toLowerCase());
    if (differing < least && differing <= Math.max(1, Math.floor(name.length / 3))) {
      closest = name;
      least = differing;
    }
  }
  return closest;
}

/** ` did you mean …?`, or nothing when no name is near. */
export function didYouMean(written: string, names: Iterable<string>): string {
  const closest = closestName(written, names);
  return closest === undefined ? '' : `; did you mean \`${closest}\`?`;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment) that lead from `a` to `b`. */
function editDistance(a: string, b: string): number {
  const from = a.slice(0, bounds.configComparedCharsMax);
  const to = b.slice(0, bounds.configComparedCharsMax);
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row[j] = Math.min(
        at(last, j) + 1,
        at(row, j - 1) + 1,
        at(last, j - 1) + (same ? 0 : 1),
        swapped ? at(beforeLast, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforeLast = last;
    last = row;
  }
  return at(last, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
