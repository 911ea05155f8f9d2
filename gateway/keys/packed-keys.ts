import { hashOf, PlaceTable } from '../shared/structures/place-table.ts';
import type { RawKey } from './key-schema.ts';
import { keyChanges } from './plans/compile-key.ts';

/**
 * Keys as a few arrays of numbers and bytes. 100,000 keys take 20 MB, need no garbage collection, and can be transferred to another thread
 * without a copy. A key's rank is its position in the order of ids.
 */
export interface PackedKeys {
  /** JSON with the id first. */
  readonly records: Buffer;
  /** The start and the end (exclusive) of each record, by rank. */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  /** The plan (an index into `planNames`) and the state of each key, by rank, so that statistics over all keys do not read the records. */
  readonly planNames: readonly string[];
  readonly plans: Uint32Array;
  readonly disabled: Uint8Array;
  /** When the last secret of each key expires, epoch ms, by rank; 0 without secrets. */
  readonly endsMs: Float64Array;
  /** The ranks of the keys whose plan changes at a date, ascending, and the times of all these changes, epoch ms, in any order. */
  readonly dated: Uint32Array;
  readonly changeTimes: Float64Array;
  /** A `PlaceTable` by the hash of a secret's digest. A place is one higher than the rank of the secret's key. */
  readonly digestHashes: Uint32Array;
  readonly digestOwners: Uint32Array;
  readonly secrets: number;
}

/** `order[rank]` is the number of the `add` call of the key. */
interface Packed {
  readonly keys: PackedKeys;
  readonly order: Uint32Array;
}

export interface Packer {
  add(key: RawKey): void;
  /** @returns undefined when two keys have the same id, or two secrets the same digest */
  finish(): Packed | undefined;
}

export function createPacker(): Packer {
  let records = Buffer.allocUnsafeSlow(65_536);
  let used = 0;
  const ids: string[] = [];
  const starts: number[] = [];
  const plans: number[] = [];
  const disabled: number[] = [];
  const endsMs: number[] = [];
  const dated: number[] = [];
  const changeTimes = new Set<number>();
  const planIndexes = new Map<string, number>();
  /** For each secret, with the number of the `add` call of its key. */
  const hashes: number[] = [];
  const owners: number[] = [];

  return {
    add(key) {
      const json = recordOf(key);
      // UTF-8 takes at most three bytes for a UTF-16 unit.
      const room = used + 3 * json.length;
      if (room > records.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(room, 2 * records.length));
        records.copy(larger, 0, 0, used);
        records = larger;
      }
      ids.push(key.id);
      starts.push(used);
      used += records.write(json, used);
      const plan = planIndexes.get(key.plan) ?? planIndexes.size;
      planIndexes.set(key.plan, plan);
      plans.push(plan);
      disabled.push(key.disabled ? 1 : 0);
      endsMs.push(lastEndMs(key));
      const changes = keyChanges(key);
      if (changes !== undefined) dated.push(starts.length - 1);
      for (const { fromMs } of changes ?? []) changeTimes.add(fromMs);
      for (const { sha256 } of key.secrets) {
        hashes.push(hashOf(sha256));
        owners.push(starts.length - 1);
      }
    },
    finish() {
      const order = sortedOrder(ids);
      for (let rank = 1; rank < order.length; rank++)
        if (ids[order[rank] ?? 0] === ids[order[rank - 1] ?? 0]) return undefined;
      const ranks = new Uint32Array(order.length);
      for (const [rank, added] of order.entries()) ranks[added] = rank;
      const byRank = (values: readonly number[]) => Uint32Array.from(order, (added) => values[added] ?? 0);
      const keys = {
        // A clone of the subarray would include the whole reserved buffer.
        records: Buffer.from(new Uint8Array(records.subarray(0, used)).buffer),
        starts: byRank(starts),
        ends: Uint32Array.from(order, (added) => starts[added + 1] ?? used),
        planNames: [...planIndexes.keys()],
        plans: byRank(plans),
        disabled: Uint8Array.from(byRank(disabled)),
        endsMs: Float64Array.from(order, (added) => endsMs[added] ?? 0),
        dated: Uint32Array.from(dated, (added) => ranks[added] ?? 0).sort(),
        changeTimes: Float64Array.from(changeTimes),
        secrets: hashes.length,
      };
      const ranksOfOwners = Uint32Array.from(owners, (added) => ranks[added] ?? 0);
      const digests = indexDigests(keys, Uint32Array.from(hashes), ranksOfOwners);
      return digests && { keys: { ...keys, ...digests }, order };
    },
  };
}

/** After a structured clone, which turns a Buffer into a Uint8Array. A Buffer decodes text faster. */
export function unpackable(packed: PackedKeys): PackedKeys {
  const { buffer, byteOffset, length } = packed.records;
  return { ...packed, records: Buffer.from(buffer, byteOffset, length) };
}

export function recordAt({ records, starts, ends }: Records, rank: number): RawKey {
  return JSON.parse(records.toString('utf8', starts[rank], ends[rank]));
}

/** Does not parse the record. */
export function idAt({ records, starts }: Records, rank: number): string {
  const start = (starts[rank] ?? 0) + idOffset;
  return records.toString('latin1', start, records.indexOf(quote, start));
}

/** The number of ids that sort before this id: the rank of a key with the id. */
export function ranksBefore(keys: Records, id: string): number {
  let [low, high] = [0, keys.starts.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareId(keys, middle, id) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @returns undefined when no key has this id */
export function rankOf(keys: Records, id: string): number | undefined {
  const rank = ranksBefore(keys, id);
  return rank < keys.starts.length && compareId(keys, rank, id) === 0 ? rank : undefined;
}

export function recordOfDigest(keys: PackedKeys, digest: string): RawKey | undefined {
  const owners = new PlaceTable({ hashes: keys.digestHashes, places: keys.digestOwners });
  for (const owner of owners.find(hashOf(digest))) {
    const record = recordAt(keys, owner - 1);
    if (hasDigest(record, digest)) return record;
  }
  return undefined;
}

/** Epoch ms; 0 without secrets. */
export function lastEndMs({ secrets }: Pick<RawKey, 'secrets'>): number {
  return secrets.reduce((last, { expires = Number.POSITIVE_INFINITY }) => Math.max(last, expires), 0);
}

type Records = Pick<PackedKeys, 'records' | 'starts' | 'ends'>;

const idOffset = '{"id":"'.length;
const quote = 0x22;

/** The id comes first. Its bytes can be found without parsing, because JSON does not escape its characters. */
function recordOf({ id, ...rest }: RawKey): string {
  return JSON.stringify({ id, ...rest });
}

function sortedOrder(ids: readonly string[]): Uint32Array {
  const order = Uint32Array.from(ids, (_, added) => added);
  return order.sort((a, b) => compare(ids[a] ?? '', ids[b] ?? ''));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The order of bytes matches the order of characters, because ids are ASCII. */
function compareId({ records, starts }: Records, rank: number, id: string): number {
  const start = (starts[rank] ?? 0) + idOffset;
  for (let at = 0; at < id.length; at++) {
    const byte = records[start + at] ?? quote;
    const difference = (byte === quote ? -1 : byte) - id.charCodeAt(at);
    if (difference !== 0) return difference;
  }
  return records[start + id.length] === quote ? 0 : 1;
}

/** @param ranks the rank of each secret's key @returns undefined when two secrets have the same digest */
function indexDigests(
  keys: Records,
  hashes: Uint32Array,
  ranks: Uint32Array,
): Pick<PackedKeys, 'digestHashes' | 'digestOwners'> | undefined {
  // At most half of the slots are used, so that searches are short.
  const slots = 2 ** Math.ceil(Math.log2(2 * hashes.length + 2));
  const owners = new PlaceTable(slots);
  for (const [index, hash] of hashes.entries()) {
    const rank = ranks[index] ?? 0;
    for (const owner of owners.find(hash)) if (shareDigest(keys, rank, owner - 1)) return undefined;
    owners.add(hash, rank + 1);
  }
  return { digestHashes: owners.hashes, digestOwners: owners.places };
}

/** Whether two keys share a digest, or one key has a digest twice. */
function shareDigest(keys: Records, rank: number, other: number): boolean {
  const digests = [...new Set([rank, other])].flatMap((one) => recordAt(keys, one).secrets);
  return new Set(digests.map(({ sha256 }) => sha256)).size < digests.length;
}

function hasDigest({ secrets }: RawKey, digest: string): boolean {
  return secrets.some(({ sha256 }) => sha256 === digest);
}
