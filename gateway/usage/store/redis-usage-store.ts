import { readFileSync } from 'node:fs';
import { decode, Encoder } from '@msgpack/msgpack';
import type { Result } from 'ioredis';
import type { RedisConnection, RedisNode } from '../../redis/redis-connection.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import { replyOrUndefined } from '../../redis/redis-reply.ts';
import { whateverArrives, withinDeadline } from '../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { PackedCounts } from './counts.ts';
import type { Batch, Fields, RecordName, StoredRecord, UsageStore } from './usage-store.ts';

const addScript = readFileSync(new URL('add-counts.lua', import.meta.url), 'utf8');

/** The field in which the script stores the last batch number of each process. */
const batchesField = 'batches';

/** The reply of the script for a batch that another server must add. */
const notHere = -1;

interface WaitingBatch {
  readonly batch: Batch;
  /** The name of the record in Redis. */
  readonly name: string;
  readonly added: (result: 'added' | 'failed') => void;
}

/** All stores share one encoder, because each encoder allocates a buffer of 2 kB. Each caller must copy the encoder's output. */
const encoder = new Encoder();

/**
 * Keeps each usage record as a Redis hash with MessagePack fields. All calls use a separate connection, so decisions never
 * wait behind a large reply.
 */
export function createRedisUsageStore({
  redis,
  keptMs,
  onPause,
  bounds,
}: {
  readonly redis: RedisConnection;
  /** How long the index of active keys is kept after its last change. */
  readonly keptMs: number;
  /** Called with the reason when recording must pause, and with undefined when it may resume. */
  readonly onPause?: ((reason: string | undefined) => void) | undefined;
  readonly bounds: Bounds;
}): UsageStore {
  const { commands: client, prefix } = redis;
  client.defineCommand('addCounts', { lua: addScript });
  const activeName = redisKeys.usageActive.name(prefix);
  /** The batches of this turn of the event loop, which are sent together. */
  let waiting: WaitingBatch[] = [];
  /** The Redis servers whose memory is almost full, with the reason for each. */
  let full: ReadonlyMap<RedisNode, string> = new Map();
  const memoryTimer = setInterval(checkMemory, bounds.usageMemoryCheckIntervalMs).unref();
  const stopListening = redis.on('ready', checkMemory);

  return {
    add(batch) {
      if (waiting.length === 0) queueMicrotask(addWaiting);
      return new Promise((added) => {
        waiting.push({ batch, name: nameOf(batch.record), added });
      });
    },

    async remove(record, fields) {
      if (fields.length === 0) return true;
      const name = nameOf(record);
      return (await attempt([name], () => client.hdel(name, ...fields))) !== undefined;
    },

    async read(reads) {
      const readAll = () =>
        reads.map(async ({ record, fields }) => {
          const name = nameOf(record);
          return redis.isReady(name) ? await readOne(name, fields) : undefined;
        });
      const records = redis.gather(readAll);
      const { values } = await whateverArrives(records, bounds.usageCallTimeoutMs);
      return values.length > 0 && values.every((record) => record === undefined) ? undefined : values;
    },

    async noteActive(keys) {
      if (keys.length === 0) return true;
      if (full.has(redis.nodeOf(activeName))) return false;
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

    placeOf: (keyId) => redis.placeOf(nameOf({ kind: 'totals', keyId })),

    async lastSeen(keyIds) {
      if (keyIds.length === 0) return [];
      const scores = await attempt([activeName], () => client.zmscore(activeName, ...keyIds));
      return scores?.map((score) => Number(score ?? 0));
    },

    pausedBecause(record) {
      if (full.size === 0) return undefined;
      return record === undefined ? [...full.values()].join('; ') : full.get(redis.nodeOf(nameOf(record)));
    },

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

  /** Batches for the same server share a call. */
  function addWaiting(): void {
    const byServer = Map.groupBy(waiting, ({ name }) => redis.nodeOf(name));
    waiting = [];
    redis.gather(() => {
      for (const ofServer of byServer.values()) {
        for (const part of partsOf(ofServer, bounds)) void addTogether(part);
      }
    });
  }

  /**
   * Adds batches with one call. A server of a Cluster refuses to add a batch for a slot that is not on this server any more. Such a batch
   * gets its own call, because ioredis redirects a call to the server of its first key.
   */
  async function addTogether(part: readonly WaitingBatch[]): Promise<void> {
    const names = part.map(({ name }) => name);
    const replies = await callScript(part, redis.oneServer ? names : names.slice(0, 1));
    for (const [index, one] of part.entries()) {
      if (replies?.[index] === notHere) void addAlone(one);
      else one.added(replies === undefined ? 'failed' : 'added');
    }
  }

  async function addAlone(one: WaitingBatch): Promise<void> {
    const [reply = notHere] = (await callScript([one], [one.name])) ?? [];
    one.added(reply === notHere ? 'failed' : 'added');
  }

  /** @returns the reply for each batch; undefined if the call failed */
  function callScript(
    part: readonly WaitingBatch[],
    declared: readonly string[],
  ): Promise<readonly number[] | undefined> {
    const args: (string | Buffer)[] = [];
    for (const { batch, name } of part) {
      const { sender, number, fields, expiresMs } = batch;
      args.push(name, sender, String(number), String(Math.ceil(expiresMs / 1000)), String(fields.size));
      for (const [field, packed] of fields) args.push(field, Buffer.from(encoder.encodeSharedRef(packed)));
    }
    return attempt(declared, () => client.addCounts(declared.length, ...declared, ...args));
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

  /** Undefined if the reply does not arrive in time or the connection is down. */
  async function attempt<T>(names: readonly string[], call: () => Promise<T>): Promise<T | undefined> {
    return replyOrUndefined(redis, names, call, bounds.usageCallTimeoutMs);
  }

  /** Pauses recording on a server whose memory is almost full, because quotas need the remaining memory. */
  async function checkMemory(): Promise<void> {
    const nodes = redis.nodes();
    const reasons = await Promise.all(nodes.map(whyFull));
    const found = new Map<RedisNode, string>();
    for (const [index, node] of nodes.entries()) {
      const reason = reasons[index];
      if (reason !== undefined) found.set(node, reason);
    }
    const wasPaused = full.size > 0;
    full = found;
    if (wasPaused !== full.size > 0) onPause?.(full.size > 0 ? [...full.values()].join('; ') : undefined);
  }

  /**
   * Returns the reason for a pause; undefined when the server has room. If the server does not answer, the function
   * returns the server's last result.
   */
  async function whyFull(node: RedisNode): Promise<string | undefined> {
    const { name = 'Redis', client } = node;
    if (client?.status !== 'ready') return full.get(node);
    const reply = client.info('memory').catch(() => undefined);
    const info = await withinDeadline(reply, bounds.usageCallTimeoutMs, () => undefined);
    if (info === undefined) return full.get(node);
    const [max, used] = [figureIn(info, 'maxmemory'), figureIn(info, 'used_memory')];
    if (max === 0 || used <= bounds.usageMemoryShareMax * max) return undefined;
    const percent = (of: number) => `${Math.round(of * 100)} %`;
    return `${name} has used ${percent(used / max)} of its maxmemory; the record stops at ${percent(bounds.usageMemoryShareMax)}`;
  }
}

/** Divides batches into parts that are small enough for one call. A batch with too many fields has its own part. */
function partsOf(
  all: readonly WaitingBatch[],
  { usageRecordsPerCallMax, usageFieldsPerCallMax }: Bounds,
): WaitingBatch[][] {
  const parts: WaitingBatch[][] = [];
  let part: WaitingBatch[] = [];
  let fields = 0;
  for (const one of all) {
    const { size } = one.batch.fields;
    if (part.length === 0 || part.length >= usageRecordsPerCallMax || fields + size > usageFieldsPerCallMax) {
      part = [];
      parts.push(part);
      fields = 0;
    }
    part.push(one);
    fields += size;
  }
  return parts;
}

function figureIn(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
}

/** If a Redis key is not a hash, its record is read as empty. The other records of the same call stay readable. */
function emptyIfNoHash<Reply>(empty: Reply): (error: Error) => Reply {
  return (error) => {
    if (error.message.startsWith('WRONGTYPE')) return empty;
    throw error;
  };
}

/** Omits unreadable fields, so that the other fields stay readable. The next batch replaces an unreadable field. */
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

/** Decodes a MessagePack list; undefined for other data. */
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
    addCounts(keysCount: number, ...keysAndBatches: (string | Buffer)[]): Result<number[], Context>;
  }
}
