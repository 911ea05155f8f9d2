import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import { scriptWithChapters } from '../../../quota/calls/library.ts';
import type { RedisConnection } from '../../../redis/redis-connection.ts';
import { redisKeys } from '../../../redis/redis-keys.ts';
import { type Away, late, notConnected, replyOrAway, toAway } from '../../../redis/redis-reply.ts';
import { whateverArrives } from '../../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type DirectoryKey, digestsOf, fromRecord, type KeyVersion } from '../directory-key.ts';
import type {
  Absent,
  Changed,
  Created,
  DirectoryStore,
  FoundKey,
  Remembered,
  Unrevised,
  Written,
} from './directory-store.ts';
import { createFormMarks } from './form-marks.ts';

const listScript = readFileSync(new URL('list-id.lua', import.meta.url), 'utf8');
const changeScript = scriptWithChapters(readFileSync(new URL('change-record.lua', import.meta.url), 'utf8'), {
  allowOom: true,
});
const generationScript = scriptWithChapters('return readGeneration(KEYS[1], tonumber(ARGV[1]))');
/**
 * The flag `allow-oom` lets this script run when Redis is out of memory. A rotation writes the record before it runs this script. If the
 * script failed, look-ups would not find the new secret.
 */
const indexScript = `#!lua flags=allow-oom
return redis.call('SET', KEYS[1], unpack(ARGV))`;
const dropScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** A text that sorts after every character that an id may have. */
const lastCharacter = '\x7f';
/** An id with this suffix sorts after the id's own entries, and before the entries of longer ids. */
const behindTags = '\x01';

/**
 * The directory in Redis (`redis-keys.ts`). Each command and script uses one Redis key, or several in one slot. The directory therefore works
 * on a Redis Cluster and on several separate servers. A change takes several commands without a transaction. The order of these commands
 * keeps the data consistent.
 *
 * A new key gets a unique tag, even when its id was used before. First, the id and the tag are added to the list of ids. Then the digests
 * and the tag are added to the index. The record is written last. A removal deletes the record first, and then only the entries with its
 * tag. A late removal therefore does not affect a newer key with the same id.
 *
 * A process that dies before it writes the record leaves entries without a record. A look-up by an entry without a record finds no key, and
 * a later request removes the entry. The removal of the entry is safe, because a new record is refused when its entry in the list is older
 * than `directoryCreatedWithinMs`.
 */
export function createRedisDirectoryStore({
  redis,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly bounds: Bounds;
}): DirectoryStore {
  const { commands: client, prefix } = redis;
  const idsName = redisKeys.directoryIds.name(prefix);
  const recordName = (id: string) => redisKeys.directoryRecord.name(prefix, id);
  const digestName = (digest: string) => redisKeys.directoryDigest.name(prefix, digest);
  const quotaName = (id: string) => redisKeys.quota.name(prefix, id);
  client.defineCommand('readGeneration', { numberOfKeys: 1, lua: generationScript });
  const formMarks = createFormMarks({ redis, attempt, bounds });
  let tidying = 0;

  return {
    isAllIssued: formMarks.isAllIssued,
    confirmAllIssued: formMarks.confirmAllIssued,

    find(digest) {
      const name = digestName(digest);
      return attempt(
        [name],
        async () => {
          const entry = await redis.gather(() => client.get(name));
          if (entry === null) return absent;
          const { id, tag } = taggedOf(entry);
          const found = await readOne(id, lastingGenerationOf);
          if (found.kind === 'found' && digestsOf(found.key).includes(digest)) return found;
          tidy(async () => {
            if (isLeftover(tag, await redis.clockOf(name))) await drop([digest], entry);
          });
          return absent;
        },
        bounds.directoryLookUpDeadlineMs,
      );
    },

    read: (id, deadlineMs) => attempt([recordName(id)], () => readOne(id, generationOf), deadlineMs),

    async readMany(ids) {
      if (!redis.nodes().some(({ client }) => client?.status === 'ready')) return notConnected;
      const records = ids.map(async (id) => {
        const name = recordName(id);
        return redis.isReady(name) ? { key: toKey(id, await readRecord(id)) } : undefined;
      });
      const { values, error } = await whateverArrives(records, bounds.storePatientDeadlineMs);
      // With a single server, one missing reply means that the whole store is unavailable.
      if (redis.nodes().length === 1 && values.includes(undefined)) return error ? toAway(error) : late;
      for (const [index, found] of values.entries()) {
        if (found !== undefined && found.key === undefined) tidyList(ids[index] ?? '');
      }
      return { kind: 'found', keys: values.map((found) => (found === undefined ? 'unknown' : found.key)) };
    },

    async create(key, often) {
      await formMarks.claim();
      return create(key, often);
    },

    async createImported(key) {
      const announced = await formMarks.announceUnknown();
      return announced.kind === 'away' ? announced : create(key);
    },

    replace(key, expected) {
      return attempt([recordName(key.id)], async () => {
        const changed = await change(key.id, expected, toRecord(key));
        if (changed.kind !== 'done') return unchanged(changed);
        const [before, digests] = [digestsStored(key.id, changed), digestsOf(key)];
        const entry = tagged(key.id, changed.tag);
        // Existing entries are not removed, because this call may be late and the id may belong to a newer key.
        await afterwards(index(digests, entry, 'NX'), 'the index');
        const others = before.filter((digest) => !digests.includes(digest));
        await afterwards(drop(others, entry), 'the index');
        return written(key, changed);
      });
    },

    remove(id, expected) {
      return attempt([recordName(id)], async () => {
        const changed = await change(id, expected, '');
        if (changed.kind !== 'done') return unchanged(changed);
        const entry = tagged(id, changed.tag);
        await afterwards(drop(digestsStored(id, changed), entry), 'the index');
        await afterwards(client.zrem(idsName, entry), 'the list of ids');
        return { kind: 'removed' } as const;
      });
    },

    page({ after = '', prefix: start = '', limit }) {
      return attempt([idsName], async () => {
        const min =
          after >= start && after !== '' ? `(${after}${behindTags}` : start === '' ? '-' : `[${start}`;
        const max = start === '' ? '+' : `[${start}${lastCharacter}`;
        const entries = await client.zrangebylex(idsName, min, max, 'LIMIT', 0, limit + 1);
        const all = entries.map((entry) => taggedOf(entry).id);
        const ids = all.filter((id, index) => id !== all[index - 1]);
        if (ids.length < all.length) tidyList(all.find((id, index) => id === all[index - 1]) ?? '');
        const listed = ids.slice(0, limit);
        return { kind: 'page', ids: listed, next: all.length > limit ? listed.at(-1) : undefined };
      });
    },

    count: () => attempt([idsName], async () => ({ kind: 'counted', keys: await client.zcard(idsName) })),

    remember(name, value, expiryMs) {
      const key = redisKeys.directoryOnce.name(prefix, name);
      const ask = async (): Promise<Remembered> => {
        if ((await client.set(key, value, 'PX', expiryMs, 'NX')) === 'OK') return { kind: 'stored' };
        const known = await client.get(key);
        // The value expired between the two commands.
        return known === null ? ask() : { kind: 'known', value: known };
      };
      return attempt([key], ask);
    },
  };

  function create(key: Unrevised, often?: 'once'): Promise<Created> {
    return attempt([idsName, recordName(key.id)], async () => {
      const digests = digestsOf(key);
      const tag = await client.eval(listScript, 1, idsName, key.id, randomBytes(4).toString('base64url'));
      const entry = tagged(key.id, String(tag));
      await index(digests, entry);
      const changed = await change(key.id, nothing, toRecord(key), String(tag), often);
      if (changed.kind === 'done' && changed.tag === tag) return written(key, changed);
      // Another call has created a key with this id. The existing key may use digests that this call has indexed.
      const used = digestsStored(key.id, changed);
      const unused = digests.filter((digest) => !used.includes(digest));
      await afterwards(Promise.all([client.zrem(idsName, entry), drop(unused, entry)]), 'the index');
      switch (changed.kind) {
        case 'done':
          return written(key, changed);
        case 'late':
          return tooLate;
        case 'removed':
          return { kind: 'removed' };
        default:
          return { kind: 'taken' };
      }
    });
  }

  /**
   * Reads a key and its generation. The generation is read first, so a change between the two reads makes the generation outdated. The first
   * two reads are not pipelined, because a Cluster that moves the slot might answer a pipeline in the wrong order. If the generation has
   * changed after both reads, the key is read again. Otherwise a failover that loses a change could restore the generation that was read
   * before this change, and the process would keep the record that was read after this change.
   */
  async function readOne(id: string, read: (id: string) => Promise<number>): Promise<FoundKey | Absent> {
    for (let reads = 0; ; reads++) {
      const generation = await read(id);
      const [fields, after] = await Promise.all([readRecord(id), generationOf(id)]);
      const key = toKey(id, fields);
      if (key === undefined) return absent;
      if (after === generation || reads === bounds.directoryRereadsMax)
        return { kind: 'found', key, generation };
    }
  }

  async function generationOf(id: string): Promise<number> {
    return Number((await client.hget(quotaName(id), 'changedMs')) ?? 0);
  }

  /** Reads the generation of a key that a request uses. If the key has none, the key gets a generation that lasts for days. */
  async function lastingGenerationOf(id: string): Promise<number> {
    return Number(await client.readGeneration(quotaName(id), bounds.directoryGenerationKeptMs));
  }

  function readRecord(id: string): Promise<(string | null)[]> {
    return client.hmget(recordName(id), 'revision', 'record');
  }

  async function index(
    digests: readonly string[],
    ...value: [entry: string] | [entry: string, 'NX']
  ): Promise<void> {
    await Promise.all(digests.map((digest) => client.eval(indexScript, 1, digestName(digest), ...value)));
  }

  async function change(
    id: string,
    { revision: seen, changedMs }: KeyVersion,
    record: string,
    newTag = '',
    often = '',
  ): Promise<RecordChange> {
    const names = [recordName(id), redisKeys.directoryRemoved.name(prefix, id), quotaName(id)];
    const { directoryCreatedWithinMs: withinMs, idempotencyKeptMs: keptMs, directoryCachedMs } = bounds;
    // A process that has read the generation 0 uses the key for `directoryCachedMs`. The new generation lasts longer than this time.
    const args = [seen, record, changedMs, newTag, withinMs, often, keptMs, 2 * directoryCachedMs];
    const reply = await client.eval(changeScript, 3, ...names, ...args);
    const [kind, revision, stored, tag] = reply as [RecordChange['kind'], number, string, string];
    return { kind, revision, stored, tag };
  }

  /** Removes digests from the index. An entry with another tag stays, because it belongs to another key. */
  async function drop(digests: readonly string[], entry: string): Promise<void> {
    await Promise.all(digests.map((digest) => client.eval(dropScript, 1, digestName(digest), entry)));
  }

  /** Removes an id's entries that have no record and are too old to get a record. */
  function tidyList(id: string): void {
    tidy(async () => {
      const entries = await client.zrangebylex(idsName, `[${id}`, `(${id}${behindTags}`);
      const nowMs = await redis.clockOf(idsName);
      // The record is read after the entries. Only entries older than `directoryLeftoverMs` are removed. A record with the tag of such an
      // entry can no longer be written.
      const tag = await client.hget(recordName(id), 'tag');
      const others = entries.filter((entry) => entry !== tagged(id, tag ?? ''));
      const leftovers = others.filter((entry) => isLeftover(taggedOf(entry).tag, nowMs));
      if (leftovers.length > 0) await client.zrem(idsName, ...leftovers);
    });
  }

  /** Runs cleanup in the background. When too much cleanup is running, the work is skipped and a later request starts it again. */
  function tidy(work: () => Promise<void>): void {
    if (tidying >= bounds.directoryTidiedAtOnceMax) return;
    tidying++;
    work()
      .catch(() => undefined)
      .finally(() => tidying--);
  }

  function isLeftover(tag: string, nowMs: number): boolean {
    // Entries that an earlier gateway version wrote have no tag.
    return tag !== '' && nowMs - Number.parseInt(tag, 16) > bounds.directoryLeftoverMs;
  }

  function attempt<T extends { readonly kind: string }>(
    names: readonly string[],
    call: () => Promise<T>,
    deadlineMs: number = bounds.storePatientDeadlineMs,
  ): Promise<T | Away> {
    return replyOrAway(redis, names, call, deadlineMs);
  }
}

interface RecordChange {
  readonly kind: 'absent' | 'changed' | 'late' | 'removed' | 'done';
  /** The revision that is stored now. */
  readonly revision: number;
  /** The record that was stored before this call. */
  readonly stored: string;
  readonly tag: string;
}

/** The version that is expected for a new key. */
const nothing: KeyVersion = { revision: 0, changedMs: 0 };
const absent: Absent = { kind: 'absent' };
const tooLate: Away = { kind: 'away', mayHaveRun: false, reason: 'the key was listed too long ago' };

/** An entry of the index or of the list of ids. An entry that an earlier gateway version wrote has no tag and consists of the id alone. */
function tagged(id: string, tag: string): string {
  return tag === '' ? id : `${id}\0${tag}`;
}

function taggedOf(entry: string): { readonly id: string; readonly tag: string } {
  const [id = '', tag = ''] = entry.split('\0');
  return { id, tag };
}

function written(key: Unrevised, { revision }: RecordChange): Written {
  return { kind: 'written', key: { ...key, revision } };
}

function unchanged({ kind }: RecordChange): Absent | Changed {
  return kind === 'absent' ? absent : { kind: 'changed' };
}

/** Runs a step after the record has changed. If the step fails, the error states that only a part of the change was made. */
function afterwards(rest: Promise<unknown>, what: string): Promise<unknown> {
  return rest.catch((error: Error) => {
    throw new Error(`the record has changed, ${what} has not: ${error.message}`);
  });
}

/** @returns undefined when there is no record, or when the stored value is not a record of the gateway */
function toKey(
  id: string,
  [revision, record]: readonly (string | null | undefined)[],
): DirectoryKey | undefined {
  if (!revision || !record) return undefined;
  try {
    return fromRecord(id, Number(revision), JSON.parse(record));
  } catch {
    return undefined;
  }
}

function toRecord({ id: _, ...record }: Unrevised): string {
  return JSON.stringify(record);
}

/** Returns the digests of the record that was stored before a change. */
function digestsStored(id: string, { stored }: RecordChange): readonly string[] {
  const key = toKey(id, ['1', stored]);
  return key === undefined ? [] : digestsOf(key);
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    readGeneration(key: string, keptMs: number): Result<string, Context>;
  }
}
