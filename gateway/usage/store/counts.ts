/**
 * What one field of a record holds: numbers by a whole number from 0, such as the requests of a minute. Values add up, but
 * under `latest` stands the latest of all.
 */
export type Counts = Map<number, number>;

/** The number under which the larger of two values holds instead of their sum. */
export const latest = 0;

export function addCount(counts: Counts, number: number, value: number): void {
  const known = counts.get(number) ?? 0;
  counts.set(number, number === latest ? Math.max(known, value) : known + value);
}

/**
 * Counts as they are stored: for each number in ascending order its distance from the one before, then its value. Distances
 * are small, so that most take one octet. `add-counts.lua` adds up the same form.
 */
export type PackedCounts = readonly number[];

export function packCounts(counts: Counts): PackedCounts {
  const packed: number[] = [];
  let before = 0;
  for (const [number, value] of [...counts].sort(([a], [b]) => a - b)) {
    packed.push(number - before, value);
    before = number;
  }
  return packed;
}

export function addPacked(counts: Counts, packed: PackedCounts): void {
  let number = 0;
  for (let i = 0; i + 1 < packed.length; i += 2) {
    number += packed[i] ?? 0;
    addCount(counts, number, packed[i + 1] ?? 0);
  }
}
