import { readFileSync } from 'node:fs';
import { ReplyError } from 'ioredis';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import { redisKeys } from '../../redis-keys.ts';
import { whateverArrives, withinDeadline } from '../../structures/within-deadline.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import type { DirectoryKey, KeyVersion } from '../directory-key.ts';
import {
  type Absent,
  type Away,
  type DirectoryStore,
  type FoundKey,
  pageOf,
  type Remembered,
  type Unrevised,
} from './directory-store.ts';

const changeScript = readFileSync(new URL('change-record.lua', import.meta.url), 'utf8');
const noteScript = readFileSync(new URL('note-change.lua', import.meta.url), 'utf8');
/** As a script it also runs where Redis is out of memory: a rotation that ended there would leave a key without a secret that works. */
const indexScript = `#!lua flags=allow-oom
return redis.call('SET', KEYS[1], ARGV[1])`;
const dropScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** Behind every character that an id may have. */
const lastCharacter = '\x7f';

/**
 * The directory in Redis (`redis-keys.ts`). Commands and scripts have one key each, so that it works on a Redis Cluster and
 * on servers that keep each key elsewhere. Several of them are no transaction: their order makes up for it. The id is listed
 * first, so that no key is missing from the list; then the record is written, and last the index of digests. A digest that is
 * not in the record is none of the key's. Removing begins with the record.
 */
export function createRedisDirectoryStore({
  redis,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly bounds: Pick<Bounds, 'directoryCachedMs' | 'directoryLookUpDeadlineMs' | 'storePatientDeadlineMs'>;
}): DirectoryStore {
  const { commands: client, prefix } = redis;
  const idsName = redisKeys.directoryIds.name(prefix);
  const recordName = (id: string) => redisKeys.directoryRecord.name(prefix, id);
  const digestName = (digest: string) => redisKeys.directoryDigest.name(prefix, digest);
  const notedMs = 2 * bounds.directoryCachedMs;

  return {
    find(digest) {
      const name = digestName(digest);
      return attempt(
        [name],
        async () => {
          const id = await redis.gather(() => client.get(name));
          const found = id === null ? absent : await readOne(id);
          return found.kind === 'found' && hasDigest(found.key, digest) ? found : absent;
        },
        bounds.directoryLookUpDeadlineMs,
      );
    },

    read: (id) => attempt([recordName(id)], () => readOne(id)),

    async readMany(ids) {
      if (!redis.nodes().some(({ client }) => client?.status === 'ready')) return notConnected;
      const records = ids.map(async (id) => {
        const name = recordName(id);
        return redis.isReady(name) ? { key: toKey(id, await readRecord(id)) } : undefined;
      });
      const { values, error } = await whateverArrives(records, bounds.storePatientDeadlineMs);
      // One server that gives no answer is as good as none.
      if (redis.nodes().length === 1 && values.includes(undefined)) return error ? toAway(error) : late;
      return { kind: 'found', keys: values.map((found) => (found === undefined ? 'unknown' : found.key)) };
    },

    create(key) {
      return attempt([idsName, recordName(key.id)], async () => {
        await client.zadd(idsName, 0, key.id);
        const written = await write(key, nothing);
        return written.kind === 'written' ? written : ({ kind: 'taken' } as const);
      });
    },

    replace: (key, expected) => attempt([recordName(key.id)], () => write(key, expected)),

    remove(id, expected) {
      return attempt([recordName(id)], async () => {
        const changed = await change(id, expected, '');
        if (changed.kind !== 'done') return changed;
        await afterwards(unlist(id, digestsOf(toKey(id, ['1', changed.before]))), 'the index');
        return { kind: 'removed' } as const;
      });
    },

    page({ after = '', prefix: start = '', limit }) {
      return attempt([idsName], async () => {
        const min = after >= start && after !== '' ? `(${after}` : start === '' ? '-' : `[${start}`;
        const max = start === '' ? '+' : `[${start}${lastCharacter}`;
        return pageOf(await client.zrangebylex(idsName, min, max, 'LIMIT', 0, limit + 1), limit);
      });
    },

    count: () => attempt([idsName], async () => ({ kind: 'counted', keys: await client.zcard(idsName) })),

    remember(name, value, expiryMs) {
      const key = redisKeys.directoryOnce.name(prefix, name);
      const ask = async (): Promise<Remembered> => {
        if ((await client.set(key, value, 'PX', expiryMs, 'NX')) === 'OK') return { kind: 'stored' };
        const known = await client.get(key);
        // It has expired in between.
        return known === null ? ask() : { kind: 'known', value: known };
      };
      return attempt([key], ask);
    },
  };

  async function readOne(id: string): Promise<FoundKey | Absent> {
    // In this order: whoever changes the key between the two makes this generation an old one. Sent together, a Cluster that
    // moves the slot might answer them in the other order.
    const changedMs = await client.hget(redisKeys.quota.name(prefix, id), 'changedMs');
    const key = toKey(id, await readRecord(id));
    return key === undefined ? absent : { kind: 'found', key, generation: Number(changedMs ?? 0) };
  }

  function readRecord(id: string): Promise<(string | null)[]> {
    return client.hmget(recordName(id), 'revision', 'record');
  }

  async function write(key: Unrevised, expected: KeyVersion) {
    const { id, ...record } = key;
    const changed = await change(id, expected, JSON.stringify(record));
    if (changed.kind !== 'done') return changed;
    const before = digestsOf(toKey(id, ['1', changed.before]));
    await afterwards(index(id, digestsOf(key), before), 'the index');
    return { kind: 'written', key: { ...key, revision: changed.revision } } as const;
  }

  async function index(id: string, digests: readonly string[], before: readonly string[]): Promise<void> {
    await Promise.all(digests.map((digest) => client.eval(indexScript, 1, digestName(digest), id)));
    await drop(
      id,
      before.filter((digest) => !digests.includes(digest)),
    );
  }

  async function unlist(id: string, digests: readonly string[]): Promise<void> {
    await drop(id, digests);
    await client.zrem(idsName, id);
    // Somebody may have created it anew, and listed it before this took it off the list.
    if ((await client.exists(recordName(id))) === 1) await client.zadd(idsName, 0, id);
  }

  /**
   * The change is noted before it is made and after it. Whoever read the record before the change may have the first note, and
   * then sees the second. If this process dies in between, whoever read it before the first note sees that one.
   */
  async function change(
    id: string,
    { revision: seen, changedMs }: KeyVersion,
    record: string,
  ): Promise<RecordChange> {
    await note(id);
    const reply = await client.eval(changeScript, 1, recordName(id), seen, record, changedMs);
    const [kind, revision, before] = reply as [RecordChange['kind'], number, string];
    if (kind !== 'done') return { kind };
    await afterwards(note(id), 'its note');
    return { kind, revision, before };
  }

  async function note(id: string): Promise<void> {
    await client.eval(noteScript, 1, redisKeys.quota.name(prefix, id), notedMs);
  }

  /** What the index says of another key by now stays. */
  async function drop(id: string, digests: readonly string[]): Promise<void> {
    await Promise.all(digests.map((digest) => client.eval(dropScript, 1, digestName(digest), id)));
  }

  async function attempt<T extends { readonly kind: string }>(
    names: readonly string[],
    call: () => Promise<T>,
    deadlineMs: number = bounds.storePatientDeadlineMs,
  ): Promise<T | Away> {
    if (!names.every(redis.isReady)) return notConnected;
    const reply: Promise<T | Away> = call().catch(toAway);
    return withinDeadline<T | Away>(reply, deadlineMs, () => late);
  }
}

type RecordChange =
  | { readonly kind: 'absent' }
  | { readonly kind: 'changed' }
  | { readonly kind: 'done'; readonly revision: number; readonly before: string };

/** Of a key that is new. */
const nothing: KeyVersion = { revision: 0, changedMs: 0 };
const absent: Absent = { kind: 'absent' };
const notConnected: Away = { kind: 'away', mayHaveRun: false, reason: 'not connected' };
const late: Away = { kind: 'away', mayHaveRun: true, reason: 'no reply within the deadline' };

/** What follows once the record has changed: whatever goes wrong then, the call has run in part. */
function afterwards(rest: Promise<void>, what: string): Promise<void> {
  return rest.catch((error: Error) => {
    throw new Error(`the record has changed, ${what} has not: ${error.message}`);
  });
}

/** An error that Redis itself replied with: nothing was changed, but perhaps the list of ids. */
function toAway(error: Error): Away {
  return { kind: 'away', mayHaveRun: !(error instanceof ReplyError), reason: error.message };
}

/** Undefined where there is no record, or something that somebody else wrote in its place. */
function toKey(
  id: string,
  [revision, record]: readonly (string | null | undefined)[],
): DirectoryKey | undefined {
  if (!revision || !record) return undefined;
  try {
    const key: DirectoryKey = { ...JSON.parse(record), id, revision: Number(revision) };
    return typeof key.plan === 'string' && Array.isArray(key.secrets) ? key : undefined;
  } catch {
    return undefined;
  }
}

function digestsOf(key: Pick<DirectoryKey, 'secrets'> | undefined): readonly string[] {
  return key?.secrets.map(({ digest }) => digest) ?? [];
}

function hasDigest(key: DirectoryKey, digest: string): boolean {
  return key.secrets.some((secret) => secret.digest === digest);
}
