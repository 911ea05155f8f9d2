/** In one message. */
const listedNamesMax = 20;
/** With a misspelt name. */
const comparedNamesMax = 10_000;
/** The cost grows with the product of the two lengths. */
const comparedCharsMax = 64;

/** The name that the user probably meant; undefined when none is close enough. At most a third of its letters may differ. */
export function closestName(written: string, names: Iterable<string>): string | undefined {
  const from = written.slice(0, comparedCharsMax).toLowerCase();
  let closest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  let compared = 0;
  for (const name of names) {
    compared += 1;
    if (compared > comparedNamesMax) break;
    const to = name.slice(0, comparedCharsMax).toLowerCase();
    const editsMax = Math.max(1, Math.floor(name.length / 3));
    // The edit distance is at least the difference of the lengths.
    if (Math.abs(from.length - to.length) > editsMax) continue;
    const differing = editDistance(from, to);
    if (differing < least && differing <= editsMax) {
      closest = name;
      least = differing;
    }
  }
  return closest;
}

/** Whether `missing` most resembles one of the written names. The advice on the written name then names it. */
export function isMisspelt(missing: string, written: readonly string[], known: readonly string[]): boolean {
  const closest = closestName(missing, written);
  return closest !== undefined && closestName(closest, known) === missing;
}

/** `; did you mean …?`, or an empty text when no name is close enough. */
export function didYouMean(written: string, names: Iterable<string>): string {
  const closest = closestName(written, names);
  return closest === undefined ? '' : `; did you mean \`${closest}\`?`;
}

/**
 * For a name that does not exist: the name that the user probably meant, or all names. @param what the noun for the named things, in the
 * plural
 */
export function adviceOnName(written: string, names: Iterable<string>, what: string): string {
  const closest = closestName(written, names);
  return closest === undefined ? `${what} are: ${listNames([...names])}` : `did you mean \`${closest}\`?`;
}

export function listNames(names: readonly string[]): string {
  const more = names.length - listedNamesMax;
  if (more <= 0) return names.join(', ');
  return `${names.slice(0, listedNamesMax).join(', ')} and ${more} more`;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(from: string, to: string): number {
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
