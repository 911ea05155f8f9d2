import { readFileSync } from 'node:fs';
import { decode, encode } from '@msgpack/msgpack';
import type { Result } from 'ioredis';
import type { RedisConnection, RedisNode } from '../../redis/redis-connection.ts';
import { withinDeadline } from '../../redis/within-deadline.ts';
import { redisKeys } from '../../redis-keys.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import type { PackedCounts } from './counts.ts';
import type { Fields, RecordName, StoredRecord, UsageStore } from './usage-store.ts';

const addScript = readFileSync(new URL('add-counts.lua', import.meta.url), 'utf8');

/** The field of a record in which the script remembers who added what last. */
const batchesField = 'batches';

/**
 * The usage record in Redis: one hash for each record, whose fields are MessagePack. All calls go over a connection of
 * its own, so that no decision waits behind a large reply.
 */
export function createRedisUsageStore({
  redis,
  keptMs,
  onPause,
  bounds,
}: {
  readonly redis: RedisConnection;
  /** How long the index of active keys stays after its last change. */
  readonly keptMs: number;
  /** Hears why nothing should be written from now on; without a reason, that it may be again. */
  readonly onPause?: ((reason: string | undefined) => void) | undefined;
  readonly bounds: Pick<
    Bounds,
    'usageCallTimeoutMs' | 'usageActiveKeysMax' | 'usageMemoryCheckIntervalMs' | 'usageMemoryShareMax'
  >;
}): UsageStore {
  const { commands: client, prefix } = redis;
  client.defineCommand('addCounts', { numberOfKeys: 1, lua: addScript });
  const activeName = redisKeys.usageActive.name(prefix);
  let paused: string | undefined;
  const memoryTimer = setInterval(checkMemory, bounds.usageMemoryCheckIntervalMs).unref();
  const stopListening = redis.on('ready', checkMemory);

  return {
    async add({ record, sender, number, fields, expiresMs }) {
      const args: (string | Buffer)[] = [];
      for (const [field, packed] of fields) args.push(field, toBuffer(encode(packed)));
      const name = nameOf(record);
      const added = await attempt([name], () =>
        client.addCounts(name, sender, String(number), String(Math.ceil(expiresMs / 1000)), ...args),
      );
      return added === undefined ? 'failed' : 'added';
    },

    async remove(record, fields) {
      if (fields.length === 0) return true;
      const name = nameOf(record);
      return (await attempt([name], () => client.hdel(name, ...fields))) !== undefined;
    },

    read(reads) {
      const names = reads.map(({ record }) => nameOf(record));
      return attempt(names, () => Promise.all(reads.map(({ fields }, i) => readOne(names[i] ?? '', fields))));
    },

    async noteActive(keys) {
      if (keys.length === 0) return true;
      const scores = keys.flatMap(({ keyId, lastSeenMs }) => [lastSeenMs, keyId]);
      const note = () => [
        client.zadd(activeName, 'GT', ...scores),
        client.zremrangebyrank(activeName, 0, -bounds.usageActiveKeysMax - 1),
        client.pexpire(activeName, keptMs),
      ];
      const noted = await attempt([activeName], () => Promise.all<unknown>(redis.gather(note)));
      return noted !== undefined;
    },

    async active() {
      const flat = await attempt([activeName], () =>
        client.zrevrange(activeName, 0, bounds.usageActiveKeysMax - 1, 'WITHSCORES'),
      );
      if (flat === undefined) return undefined;
      return Array.from({ length: flat.length / 2 }, (_, i) => ({
        keyId: flat[2 * i] ?? '',
        lastSeenMs: Number(flat[2 * i + 1]),
      }));
    },

    async lastSeen(keyIds) {
      if (keyIds.length === 0) return [];
      const scores = await attempt([activeName], () => client.zmscore(activeName, ...keyIds));
      return scores?.map((score) => Number(score ?? 0));
    },

    pausedBecause: () => paused,

    close() {
      clearInterval(memoryTimer);
      stopListening();
    },
  };

  function nameOf(record: RecordName): string {
    switch (record.kind) {
      case 'day':
        return `${redisKeys.usageDay.name(prefix, record.keyId)}:${record.day}`;
      case 'totals':
        return redisKeys.usageTotals.name(prefix, record.keyId);
      case 'operations':
        return `${redisKeys.usageOperations.name(prefix)}:${record.day}`;
    }
  }

  async function readOne(name: string, fields: readonly string[] | undefined): Promise<StoredRecord> {
    if (fields === undefined) {
      const { [batchesField]: batches, ...all } = await client
        .hgetallBuffer(name)
        .catch(emptyIfNoHash<Record<string, Buffer>>({}));
      return { fields: toFields(Object.entries(all)), batches: toBatches(batches) };
    }
    const values = await client
      .hmgetBuffer(name, batchesField, ...fields)
      .catch(emptyIfNoHash<(Buffer | null)[]>([]));
    const named = fields.map((field, i): [string, Buffer | null] => [field, values[i + 1] ?? null]);
    return { fields: toFields(named), batches: toBatches(values[0]) };
  }

  /** The reply, or nothing when there is none in time: it may come too late, or the connection is down. */
  async function attempt<T>(names: readonly string[], call: () => Promise<T>): Promise<T | undefined> {
    if (!names.every(redis.isReady)) return undefined;
    const reply: Promise<T | undefined> = call().catch(() => undefined);
    return withinDeadline(reply, bounds.usageCallTimeoutMs, () => undefined);
  }

  /** A Redis that is almost full must keep the room it has for quotas: the record stops before. Of a Cluster, the fullest server counts. */
  async function checkMemory(): Promise<void> {
    const memories = (await Promise.all(redis.nodes().map(memoryOf))).filter((one) => one !== undefined);
    const [fullest] = memories.sort((a, b) => b.share - a.share);
    if (fullest === undefined) return;
    const { name = 'Redis', share } = fullest;
    const wasPaused = paused !== undefined;
    const percent = (of: number) => `${Math.round(of * 100)} %`;
    paused =
      share > bounds.usageMemoryShareMax
        ? `${name} has used ${percent(share)} of its maxmemory; the record stops at ${percent(bounds.usageMemoryShareMax)}`
        : undefined;
    if (wasPaused !== (paused !== undefined)) onPause?.(paused);
  }

  async function memoryOf({ name, client }: RedisNode) {
    if (client?.status !== 'ready') return undefined;
    const reply = client.info('memory').catch(() => undefined);
    const info = await withinDeadline(reply, bounds.usageCallTimeoutMs, () => undefined);
    if (info === undefined) return undefined;
    const max = figureIn(info, 'maxmemory');
    return { name, share: max === 0 ? 0 : figureIn(info, 'used_memory') / max };
  }
}

function figureIn(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** What somebody else has written under the name of a record is none: it must not hide all other records. */
function emptyIfNoHash<Reply>(empty: Reply): (error: Error) => Reply {
  return (error) => {
    if (error.message.startsWith('WRONGTYPE')) return empty;
    throw error;
  };
}

/** Fields that hold something else are left out, for the same reason; the next batch for them replaces them. */
function toFields(values: readonly (readonly [string, Buffer | null])[]): Fields {
  const fields = new Map<string, PackedCounts>();
  for (const [field, packed] of values) {
    const counts = packed === null ? undefined : decodeList(packed);
    if (counts?.every(isCount)) fields.set(field, counts);
  }
  return fields;
}

function toBatches(packed: Buffer | null | undefined): ReadonlyMap<string, number> {
  const flat = packed ? (decodeList(packed) ?? []) : [];
  const batches = new Map<string, number>();
  for (let i = 0; i + 1 < flat.length; i += 2) batches.set(String(flat[i]), Number(flat[i + 1]));
  return batches;
}

/** Pairs, one behind the other. */
function decodeList(packed: Buffer): readonly unknown[] | undefined {
  try {
    const list = decode(packed);
    return Array.isArray(list) && list.length % 2 === 0 ? list : undefined;
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value);
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    addCounts(
      name: string,
      sender: string,
      number: string,
      expiresSeconds: string,
      ...fieldsAndCounts: (string | Buffer)[]
    ): Result<0 | 1, Context>;
  }
}
