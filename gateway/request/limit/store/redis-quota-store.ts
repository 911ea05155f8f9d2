import type { Result } from 'ioredis';
import { packHandBan } from '../../../quota/bans.ts';
import { createDecideCaller } from '../../../quota/calls/call-decide.ts';
import { scriptWithChapters } from '../../../quota/calls/library.ts';
import { type KeyRecord, outcomeOf, packAsk, packTerms, unpackReply } from '../../../quota/calls/records.ts';
import type { QuotaCall } from '../../../quota/decide-key.ts';
import { packGrant } from '../../../quota/grants.ts';
import { parseHash, type QuotaState } from '../../../quota/hash.ts';
import { fieldOf } from '../../../quota/windows.ts';
import { clockOfNode, type RedisConnection } from '../../../redis/redis-connection.ts';
import { redisKeys } from '../../../redis/redis-keys.ts';
import { isErrorReply } from '../../../redis/redis-reply.ts';
import type { WindowsMs } from '../../../shared/calendar-windows.ts';
import type { BanPolicy, Limits, StaleKey } from '../../../shared/model.ts';
import { whateverArrives, withinDeadline } from '../../../shared/structures/within-deadline.ts';
import type { QuotaReply, QuotaStore, StoreFailure } from './quota-store.ts';

const adjustScript = scriptWithChapters('return adjust(KEYS[1], cjson.decode(ARGV[1]))');
const confirmScript = scriptWithChapters(
  'return confirmTold(KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))',
);

/** Keeps the counts in Redis, in one hash per key (`redis-keys.ts`). The functions of `quota/` make the decisions. */
export function createRedisQuotaStore(deps: {
  redis: RedisConnection;
  windowsMs: WindowsMs;
  /** The deadline of decisions. A decision without a reply before the deadline counts as failed, although the script may have run. */
  deadlineMs: number;
  /** The deadline of calls for which no request waits: read, adjust, confirm. */
  patientDeadlineMs: number;
  /** The maximum number of keys in one call to a single server. */
  keysPerCallMax: number;
  /** How long a server that refuses functions runs scripts, before the function is tried again. */
  functionRetryMs: number;
  /** See `createDecideCaller`. */
  onFunctionRefusal?: (reason: string | undefined) => void;
}): QuotaStore {
  const { redis, windowsMs, deadlineMs, patientDeadlineMs } = deps;
  const { commands: client, prefix } = redis;
  const termsOfLimits = new WeakMap<Limits, Terms>();
  const callDecide = createDecideCaller({
    redis,
    retryMs: deps.functionRetryMs,
    onRefusal: deps.onFunctionRefusal,
  });
  client.defineCommand('adjust', { numberOfKeys: 1, lua: adjustScript });
  client.defineCommand('confirmTold', { numberOfKeys: 1, lua: confirmScript });

  return {
    async decide(calls) {
      const [first] = calls;
      if (first === undefined || !redis.isReady(nameOf(first.keyId))) return calls.map(() => notConnected);
      const arrived: QuotaReply[] = [];
      // A Cluster refuses a script whose keys are in several slots.
      const together = redis.oneServer ? deps.keysPerCallMax : 1;
      const sent = redis.gather(() => {
        const runs: Promise<void>[] = [];
        for (let from = 0; from < calls.length; from += together) {
          runs.push(run(calls.slice(from, from + together), from, arrived));
        }
        return runs;
      });
      const replies = Promise.all(sent).then(() => arrived);
      return withinDeadline(replies, deadlineMs, () => calls.map((_, at) => arrived[at] ?? late));
    },

    async read(keyIds) {
      const names = keyIds.map(nameOf);
      const nodes = new Set(names.filter(redis.isReady).map(redis.nodeOf));
      if (nodes.size === 0) return notConnected;
      // The clocks of a Cluster's servers are assumed to be synchronised, so the clock of any server can be used.
      const clocks = whateverArrives([...nodes].map(clockOfNode), patientDeadlineMs);
      const read = whateverArrives(names.map(readOne), patientDeadlineMs);
      const [{ values: times }, { values: states, error }] = await Promise.all([clocks, read]);
      const nowMs = times.find((time) => time !== undefined);
      if (nowMs !== undefined && states.some((state) => state !== undefined))
        return { kind: 'read', nowMs, states };
      return error === undefined ? late : toFailure(error);
    },

    adjust: (keyId, { ban, grant, ...change }) =>
      callPatiently(keyId, async (name) => {
        const packed = typeof grant === 'object' ? packGrant(grant) : grant;
        const [nowMs, ...flat] = await client.adjustBuffer(
          name,
          JSON.stringify({ ...change, ban: ban && packHandBan(ban), grant: packed }),
        );
        return { kind: 'changed', nowMs, state: parseHash(toHash(flat)) };
      }),

    confirmTold: (keyId, { index, percent, resetMs, ...window }) =>
      callPatiently(keyId, async (name) => {
        const reply = await client.confirmTold(name, fieldOf(window), index, percent, resetMs);
        return { kind: 'confirmed', isStored: reply === 1 };
      }),
  };

  function nameOf(keyId: string): string {
    return redisKeys.quota.name(prefix, keyId);
  }

  async function readOne(name: string): Promise<QuotaState> {
    if (!redis.isReady(name)) throw new Error(notConnected.reason);
    return parseHash(await client.hgetallBuffer(name));
  }

  /** Decides calls in one call to Redis. @param arrived the list to which the replies are written, from the index `from` */
  async function run(calls: readonly QuotaCall[], from: number, arrived: QuotaReply[]): Promise<void> {
    const places = new Map<string, number>();
    const terms: Buffer[] = [];
    const asks = calls.map((call) => {
      const { text, packed } = termsOf(call);
      const place = places.get(text) ?? terms.push(packed);
      places.set(text, place);
      return packAsk(call, place);
    });
    const names = calls.map(({ keyId }) => nameOf(keyId));
    try {
      const [nowMs, ...records] = unpackReply(await callDecide(names, [...terms, ...asks]));
      for (const [index, call] of calls.entries())
        arrived[from + index] = toReply(records[index] as KeyRecord, call, nowMs);
    } catch (error) {
      const failure = toFailure(error as Error);
      for (let index = 0; index < calls.length; index++) arrived[from + index] = failure;
    }
  }

  /** Makes a call for which no request waits. */
  async function callPatiently<Reply>(keyId: string, call: (name: string) => Promise<Reply>) {
    const name = nameOf(keyId);
    if (!redis.isReady(name)) return notConnected;
    const reply: Promise<Reply | StoreFailure> = call(name).catch(toFailure);
    return withinDeadline(reply, patientDeadlineMs, () => late);
  }

  /** Terms are packed once. */
  function termsOf(call: QuotaCall): Terms {
    const { limits, trial, bans, thresholds } = call;
    const known = termsOfLimits.get(limits);
    if (known?.bans === bans && known.lowest === thresholds?.[0] && known.trial === trial) return known;
    const packed = packTerms(call, windowsMs);
    const terms = { bans, lowest: thresholds?.[0], trial, packed, text: packed.toString('latin1') };
    termsOfLimits.set(limits, terms);
    return terms;
  }
}

interface Terms {
  readonly bans: BanPolicy;
  /** The lowest threshold, in percent; undefined without thresholds. */
  readonly lowest: number | undefined;
  readonly trial: Limits | undefined;
  readonly packed: Buffer;
  /** The octets of `packed`, which are compared with the octets of another key. */
  readonly text: string;
}

const late: StoreFailure = { kind: 'failed', mayHaveRun: true, reason: 'no reply within the deadline' };
const stale: StaleKey = Object.freeze({ kind: 'stale' });
const notConnected: StoreFailure = { kind: 'failed', mayHaveRun: false, reason: 'not connected' };

function toReply(record: KeyRecord, call: QuotaCall, nowMs: number): QuotaReply {
  if ('stale' in record) return stale;
  if ('unusable' in record)
    return { kind: 'failed', mayHaveRun: false, reason: record.unusable, keyOnly: true };
  if ('error' in record) return toRefusal(record.error);
  return { kind: 'decided', outcome: outcomeOf(record, call, nowMs) };
}

function toHash(flat: readonly (Buffer | number)[]): Record<string, Buffer> {
  const hash: Record<string, Buffer> = {};
  for (let i = 0; i < flat.length; i += 2) hash[String(flat[i])] = flat[i + 1] as Buffer;
  return hash;
}

function toFailure(error: Error): StoreFailure {
  if (isErrorReply(error)) return toRefusal(error.message);
  return { kind: 'failed', mayHaveRun: true, reason: error.message };
}

/**
 * Converts an error reply to a failure. Redis replies with OOM, READONLY, LOADING and similar errors before the script's first write. Only
 * an `ERR` reply can come after a write. Redis replies with `ERR` when the ACL forbids a command of the script, and keeps the earlier
 * writes of the script.
 */
function toRefusal(reason: string): StoreFailure {
  const keyOnly = reason.startsWith('WRONGTYPE ');
  return { kind: 'failed', mayHaveRun: reason.startsWith('ERR '), reason, ...(keyOnly && { keyOnly }) };
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    confirmTold(
      key: string,
      ...windowIndexPercentAndReset: [string, number, number, number]
    ): Result<number, Context>;
    adjustBuffer(key: string, change: string): Result<[number, ...Buffer[]], Context>;
  }
}
