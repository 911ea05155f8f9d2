/**
 * The content of one record field: values that are numbered from 0, such as the requests of each minute. When counts
 * are merged, two values with the same number are added. For the number `latest`, the larger value is kept instead.
 */
export type Counts = Map<number, number>;

/** The number under which a field stores its timestamp. When counts are merged, the later timestamp is kept. */
export const latest = 0;

export function addCount(counts: Counts, number: number, value: number): void {
  const known = counts.get(number) ?? 0;
  counts.set(number, number === latest ? Math.max(known, value) : known + value);
}

/**
 * The stored form of counts, in ascending order. Each number is stored as its distance from the previous number,
 * followed by its value. Most distances are below 128, and take one octet in MessagePack. `add-counts.lua` adds lists
 * of the same form.
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
