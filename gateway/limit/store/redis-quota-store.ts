import { readFileSync } from 'node:fs';
import { ReplyError, type Result } from 'ioredis';
import { type BanPolicy, type Grant, type Limits, planWindows, type StaleKey } from '../../model.ts';
import { clockOfNode, type RedisConnection } from '../../redis/redis-connection.ts';
import { whateverArrives, withinDeadline } from '../../redis/within-deadline.ts';
import { redisKeys } from '../../redis-keys.ts';
import type { WindowsMs } from '../calendar-windows.ts';
import {
  emptyQuotaState,
  type QuotaCall,
  type QuotaOutcome,
  type QuotaState,
  type Unsent,
  usedIn,
} from './decide-quota.ts';
import type { QuotaChanged, QuotaReply, QuotaStore, StoreFailure } from './quota-store.ts';

const decideScript = readScript('calendar-month.lua') + readScript('decide-quota.lua');
const changeScript = readScript('change-quota.lua');

/** The counts in Redis, one hash per key (`redis-keys.ts`), decided by `decide-quota.lua`. */
export function createRedisQuotaStore(deps: {
  redis: RedisConnection;
  windowsMs: WindowsMs;
  /** A decision without a reply by then has failed, though it may have run. */
  deadlineMs: number;
  /** The same for what people ask: to read, lift, reset, grant. */
  patientDeadlineMs: number;
}): QuotaStore {
  const { redis, windowsMs, deadlineMs, patientDeadlineMs } = deps;
  const { commands: client, prefix } = redis;
  const argumentsOfLimits = new WeakMap<Limits, TermArguments>();
  client.defineCommand('decideQuota', { numberOfKeys: 1, lua: decideScript });
  client.defineCommand('changeQuota', { numberOfKeys: 1, lua: changeScript });

  return {
    async decide(calls) {
      const [first] = calls;
      if (first === undefined || !redis.isReady(nameOf(first.keyId))) return calls.map(() => notConnected);
      const arrived: QuotaReply[] = [];
      // ioredis sends the script itself again when Redis has lost it.
      const replies = redis.gather(() => calls.map((call, index) => run(call, index, arrived)));
      return withinDeadline(Promise.all(replies), deadlineMs, () =>
        calls.map((_, at) => arrived[at] ?? late),
      );
    },

    async read(keyIds) {
      const names = keyIds.map(nameOf);
      const nodes = new Set(names.filter(redis.isReady).map(redis.nodeOf));
      if (nodes.size === 0) return notConnected;
      // Servers of a Cluster have a clock each, which are taken to be in step.
      const clocks = whateverArrives([...nodes].map(clockOfNode), patientDeadlineMs);
      const read = whateverArrives(names.map(readOne), patientDeadlineMs);
      const [{ values: times }, { values: states, error }] = await Promise.all([clocks, read]);
      const nowMs = times.find((time) => time !== undefined);
      if (nowMs !== undefined && states.some((state) => state !== undefined))
        return { kind: 'read', nowMs, states };
      return error === undefined ? late : toFailure(error);
    },

    liftBan: (keyId, bans) => change('lift', keyId, String(bans.maxMs)),
    reset: (keyId, bans) => change('reset', keyId, String(bans.maxMs)),
    setGrant: (keyId, grant) => change('grant', keyId, grant === undefined ? '' : packGrant(grant)),
  };

  function nameOf(keyId: string): string {
    return redisKeys.quota.name(prefix, keyId);
  }

  async function readOne(name: string): Promise<QuotaState> {
    if (!redis.isReady(name)) throw new Error(notConnected.reason);
    return stateOf(await client.hgetall(name));
  }

  /** @param arrived gets the reply, under this index */
  function run(call: QuotaCall, index: number, arrived: QuotaReply[]): Promise<QuotaReply> {
    const { keyId, limits, bans, requests, generation, unsent } = call;
    const readMs = generation === undefined ? '' : String(generation);
    const args = [nameOf(keyId), String(requests), readMs, ...argumentsOf(limits, bans)];
    if (unsent !== undefined) args.push(...unsentArguments(unsent, limits));
    const reply = client.decideQuota(...args);
    return reply.then((numbers) => {
      const decided = toReply(numbers, limits);
      arrived[index] = decided;
      return decided;
    }, toFailure);
  }

  async function change(verb: 'lift' | 'reset' | 'grant', keyId: string, argument: string) {
    const name = nameOf(keyId);
    if (!redis.isReady(name)) return notConnected;
    const changed = client
      .changeQuota(name, verb, argument)
      .then(([nowMs, ...flat]): QuotaChanged => ({ kind: 'changed', nowMs, state: stateOf(toHash(flat)) }));
    return withinDeadline<QuotaChanged | StoreFailure>(
      changed.catch(toFailure),
      patientDeadlineMs,
      () => late,
    );
  }

  /** What stands in every call of a key: made once, as the strings that are sent. */
  function argumentsOf(limits: Limits, bans: BanPolicy): readonly string[] {
    const known = argumentsOfLimits.get(limits);
    if (known?.bans === bans) return known.args;
    const windows = limits.flatMap(({ window, max }) => [window, windowsMs[window], max]);
    const args = [bans.after, bans.withinMs, bans.forMs, bans.maxMs, limits.length, ...windows].map(String);
    argumentsOfLimits.set(limits, { bans, args });
    return args;
  }
}

function readScript(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

interface TermArguments {
  readonly bans: BanPolicy;
  readonly args: readonly string[];
}

function unsentArguments(unsent: Unsent, limits: Limits): string[] {
  const { strikes, bannedUntilMs, banLevel, liftedMs, resetMs } = unsent;
  const uses = limits.flatMap(({ window }) => [unsent[window], unsent[usedIn[window]]]);
  return [strikes, bannedUntilMs, banLevel, liftedMs, resetMs, ...uses].map(String);
}

const late: StoreFailure = { kind: 'failed', mayHaveRun: true, reason: 'no reply within the deadline' };
const stale: StaleKey = Object.freeze({ kind: 'stale' });
const notConnected: StoreFailure = { kind: 'failed', mayHaveRun: false, reason: 'not connected' };

function toReply(reply: readonly number[], limits: Limits): QuotaReply {
  return reply.length === 1 ? stale : { kind: 'decided', outcome: toOutcome(reply, limits) };
}

function toOutcome(reply: readonly number[], limits: Limits): QuotaOutcome {
  const [nowMs = 0, admitted = 0, refused = 0, banned = 0] = reply;
  const [, , , , strikes = 0, strikesFromMs = 0, bannedUntilMs = 0, banLevel = 0, liftedMs = 0, resetMs = 0] =
    reply;
  const state = {
    ...emptyQuotaState,
    ...{ strikes, strikesFromMs, bannedUntilMs, banLevel, liftedMs, resetMs },
  };
  let at = 10;
  for (const { window } of limits) {
    state[window] = reply[at++] ?? 0;
    state[usedIn[window]] = reply[at++] ?? 0;
  }
  const grant: unknown = reply[at];
  if (typeof grant === 'string') state.grant = unpackGrant(grant);
  return { nowMs, admitted, refused, banned, state };
}

function toHash(flat: readonly (string | number)[]): Record<string, string> {
  const hash: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) hash[String(flat[i])] = String(flat[i + 1]);
  return hash;
}

/** The state that a hash holds: its fields have the same names. */
function stateOf(hash: Readonly<Record<string, string>>): QuotaState {
  const grant = hash.grant === undefined ? undefined : unpackGrant(hash.grant);
  const state: QuotaState = { ...emptyQuotaState, grant };
  for (const field of numberFields) state[field] = Number(hash[field] ?? 0);
  return state;
}

const numberFields = Object.keys(emptyQuotaState).filter((field) => field !== 'grant') as Exclude<
  keyof QuotaState,
  'grant'
>[];

/** One field of the hash: `<untilMs> <window> <limit> …`. */
function packGrant({ limits, untilMs }: Grant): string {
  return [untilMs, ...limits.flatMap(({ window, max }) => [window, max])].join(' ');
}

function unpackGrant(packed: string): Grant {
  const [untilMs, ...parts] = packed.split(' ');
  const limits = planWindows.flatMap((window) => {
    const at = parts.indexOf(window);
    return at === -1 ? [] : [{ window, max: Number(parts[at + 1]) }];
  });
  return { limits, untilMs: Number(untilMs) };
}

/** An error that Redis itself replied with (OOM, READONLY, LOADING …) came before the script's first write. */
function toFailure(error: Error): StoreFailure {
  return { kind: 'failed', mayHaveRun: !(error instanceof ReplyError), reason: error.message };
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    decideQuota(...keyAndArgs: string[]): Result<number[], Context>;
    changeQuota(key: string, verb: string, argument: string): Result<[number, ...string[]], Context>;
  }
}
