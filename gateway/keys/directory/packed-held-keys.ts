import { hashOf, PlaceTable } from '../../shared/structures/place-table.ts';
import type { StatedKey } from '../key-schema.ts';
import { type DirectorySecret, statedOf } from './directory-key.ts';

/** Without the periods in which the process may use the key. */
export interface PackableKey {
  readonly key: CachedKey;
  readonly generation: number;
  /** When the next secret expires, epoch ms; Infinity when none will. */
  readonly expiresMs: number;
}

/** The members that requests use. */
export interface CachedKey extends StatedKey {
  readonly secrets: readonly Pick<DirectorySecret, 'digest' | 'expiresMs' | 'leak'>[];
}

/**
 * Cached keys as bytes outside of the heap. A key takes a quarter of the memory of an object, and the garbage collector does not visit it.
 *
 * The keys are in segments of equal size, which are filled in turn. When all are full, the oldest is emptied. A caller takes a key out to
 * use it, and adds it again later, so the oldest segment contains the least recently used keys.
 *
 * | part of a record | octets |
 * |---|---|
 * | length of the record | 4 |
 * | number of digests; 255 in a record that was taken out | 1 |
 * | length of the id | 1 |
 * | generation, expiry | 8, 8 |
 * | id, digests | its length, 32 each |
 * | other members as JSON | |
 */
export class PackedHeldKeys {
  private readonly segmentBytes: number;
  private readonly segmentsMax: number;
  private readonly segments: Segment[] = [];
  /** The index of the segment to which keys are added. */
  private filling = 0;
  private readonly byId: PlaceTable;
  private readonly byDigest: PlaceTable;
  /** Entries of a table. */
  private readonly entriesMax: number;
  private keys = 0;
  private digests = 0;

  /** @param bytesMax the octets of all segments and tables */
  constructor(bytesMax: number, segmentBytes = 65_536) {
    // A record takes about 128 octets, so the tables take between an eighth and a quarter of the memory.
    const slots = 2 ** Math.floor(Math.log2(Math.max(1, bytesMax / 64)));
    this.segmentBytes = segmentBytes;
    this.segmentsMax = Math.max(0, Math.floor((bytesMax - 2 * slotBytes * slots) / segmentBytes));
    this.byId = new PlaceTable(slots);
    this.byDigest = new PlaceTable(slots);
    this.entriesMax = usedShareMax * slots;
  }

  get size(): number {
    return this.keys;
  }

  /** Adds an enabled key that this cache does not have. A key that is larger than a segment is not added. */
  add({ key, generation, expiresMs }: PackableKey): void {
    const { secrets } = key;
    const { id, disabled: _, ...members } = statedOf(key);
    if (secrets.length >= takenOut) return;
    const stated = secrets.map(({ expiresMs, leak }) => ({ expiresMs, leak }));
    const json = JSON.stringify({ ...members, secrets: stated });
    const bytes = idAt + id.length + digestBytes * secrets.length + Buffer.byteLength(json);
    const segment = this.segmentWithRoom(bytes, secrets.length);
    if (segment === undefined) return;
    const { buffer, used: start } = segment;
    buffer.writeUInt32LE(bytes, start);
    buffer.writeUInt8(secrets.length, start + countAt);
    buffer.writeUInt8(id.length, start + lengthAt);
    buffer.writeDoubleLE(generation, start + generationAt);
    buffer.writeDoubleLE(expiresMs, start + expiryAt);
    let at = start + idAt;
    at += buffer.write(id, at, 'latin1');
    const place = this.filling * this.segmentBytes + start + 1;
    this.byId.add(hashOf(id), place);
    for (const { digest } of secrets) {
      at += buffer.write(digest, at, 'hex');
      this.byDigest.add(hashOf(digest), place);
    }
    buffer.write(json, at);
    segment.used += bytes;
    this.keys++;
    this.digests += secrets.length;
  }

  take(digest: string): PackableKey | undefined {
    for (const place of this.byDigest.find(hashOf(digest))) {
      const record = this.recordAt(place);
      if (!digestsAt(record).includes(digest)) continue;
      const packed = unpack(record);
      this.takeOut(record, place);
      return packed;
    }
    return undefined;
  }

  /** Unlike `take`, leaves the key in the cache. */
  read(id: string): PackableKey | undefined {
    for (const place of this.byId.find(hashOf(id))) {
      const record = this.recordAt(place);
      if (idOf(record) === id) return unpack(record);
    }
    return undefined;
  }

  /**
   * @param generation if given, only a key of this generation is removed
   * @returns whether a key was removed
   */
  remove(id: string, generation?: number): boolean {
    for (const place of this.byId.find(hashOf(id))) {
      const record = this.recordAt(place);
      if (idOf(record) !== id) continue;
      const isOther = generation !== undefined && generationOf(record) !== generation;
      if (!isOther) this.takeOut(record, place);
      return !isOther;
    }
    return false;
  }

  private recordAt(place: number): PackedRecord {
    const segment = Math.floor((place - 1) / this.segmentBytes);
    const { buffer } = this.segments[segment] as Segment;
    return { buffer, start: place - 1 - segment * this.segmentBytes };
  }

  private takeOut(record: PackedRecord, place: number): void {
    this.byId.delete(hashOf(idOf(record)), place);
    const digests = digestsAt(record);
    for (const digest of digests) this.byDigest.delete(hashOf(digest), place);
    this.digests -= digests.length;
    record.buffer.writeUInt8(takenOut, record.start + countAt);
    this.keys--;
  }

  /** Empties old segments if necessary. */
  private segmentWithRoom(bytes: number, digests: number): Segment | undefined {
    if (bytes > this.segmentBytes || this.segmentsMax === 0) return undefined;
    const current = this.segments[this.filling];
    if (current === undefined || current.used + bytes > this.segmentBytes) {
      if (current !== undefined) this.filling = (this.filling + 1) % this.segmentsMax;
      const next = this.segments[this.filling];
      if (next === undefined) {
        this.segments[this.filling] = { buffer: Buffer.allocUnsafeSlow(this.segmentBytes), used: 0 };
      } else this.empty(this.filling);
    }
    // Keys with many secrets fill the tables before the segments.
    for (let step = 1; Math.max(this.digests + digests, this.keys + 1) > this.entriesMax; step++) {
      if (step === this.segments.length) return undefined;
      this.empty((this.filling + step) % this.segments.length);
    }
    return this.segments[this.filling];
  }

  private empty(index: number): void {
    const segment = this.segments[index] as Segment;
    const { buffer, used } = segment;
    for (let start = 0; start < used; start += buffer.readUInt32LE(start)) {
      if (buffer.readUInt8(start + countAt) === takenOut) continue;
      this.takeOut({ buffer, start }, index * this.segmentBytes + start + 1);
    }
    segment.used = 0;
  }
}

interface Segment {
  readonly buffer: Buffer;
  /** The octets of its records. */
  used: number;
}

interface PackedRecord {
  readonly buffer: Buffer;
  readonly start: number;
}

/** Positions in a record. */
const [countAt, lengthAt, generationAt, expiryAt, idAt] = [4, 5, 6, 14, 22];
const digestBytes = 32;
const takenOut = 255;

function idOf({ buffer, start }: PackedRecord): string {
  const from = start + idAt;
  return buffer.toString('latin1', from, from + buffer.readUInt8(start + lengthAt));
}

function generationOf({ buffer, start }: PackedRecord): number {
  return buffer.readDoubleLE(start + generationAt);
}

function digestsAt({ buffer, start }: PackedRecord): string[] {
  const first = start + idAt + buffer.readUInt8(start + lengthAt);
  return Array.from({ length: buffer.readUInt8(start + countAt) }, (_, index) => {
    const from = first + index * digestBytes;
    return buffer.toString('hex', from, from + digestBytes);
  });
}

function unpack(record: PackedRecord): PackableKey {
  const { buffer, start } = record;
  const [id, digests] = [idOf(record), digestsAt(record)];
  const jsonAt = start + idAt + id.length + digests.length * digestBytes;
  const { secrets, ...members } = JSON.parse(
    buffer.toString('utf8', jsonAt, start + buffer.readUInt32LE(start)),
  );
  const key: CachedKey = {
    ...{ id, ...members, disabled: false },
    secrets: digests.map((digest, index) => ({ digest, ...secrets[index] })),
  };
  return { key, generation: generationOf(record), expiresMs: buffer.readDoubleLE(start + expiryAt) };
}

/** In a table. */
const slotBytes = 8;
/** Searches are short if many slots are free. */
const usedShareMax = 0.75;
