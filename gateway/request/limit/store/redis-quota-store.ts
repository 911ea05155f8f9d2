import { readFileSync } from 'node:fs';
import { ReplyError, type Result } from 'ioredis';
import { clockOfNode, type RedisConnection } from '../../../redis/redis-connection.ts';
import { redisKeys } from '../../../redis/redis-keys.ts';
import { usedIn, type WindowsMs } from '../../../shared/calendar-windows.ts';
import {
  type BanPolicy,
  type Grant,
  type Limits,
  planWindows,
  type StaleKey,
} from '../../../shared/model.ts';
import { whateverArrives, withinDeadline } from '../../../shared/structures/within-deadline.ts';
import {
  type Asked,
  emptyQuotaState,
  endStrikes,
  type QuotaCall,
  type QuotaOutcome,
  type QuotaState,
  type Run,
  reachedIn,
  type TrialDecided,
  type Unsent,
} from './decide-quota.ts';
import type { Concurrency } from './leases.ts';
import type { QuotaChanged, QuotaReply, QuotaStore, StoreFailure, ToldConfirmed } from './quota-store.ts';
import { unpackTold } from './thresholds.ts';
import { trialStateOf, unpackTrial, windowBits } from './trial-counts.ts';

const decideScript = readScript('calendar-month.lua') + readScript('decide-quota.lua');
const changeScript = readScript('change-quota.lua');
const confirmScript = readScript('confirm-told.lua');

/**
 * Creates the store that keeps the counts in Redis, in one hash per key (`redis-keys.ts`). The script `decide-quota.lua` makes the
 * decisions.
 */
export function createRedisQuotaStore(deps: {
  redis: RedisConnection;
  windowsMs: WindowsMs;
  /** The deadline of decisions. A decision without a reply before the deadline counts as failed, although the script may have run. */
  deadlineMs: number;
  /** The deadline of calls for which no request waits: read, lift, reset, grant, confirm. */
  patientDeadlineMs: number;
  /** The maximum number of keys in one call to a single server. */
  keysPerCallMax: number;
}): QuotaStore {
  const { redis, windowsMs, deadlineMs, patientDeadlineMs } = deps;
  const { commands: client, prefix } = redis;
  const termsOfLimits = new WeakMap<Limits, Terms>();
  client.defineCommand('decideQuotas', { lua: decideScript });
  client.defineCommand('changeQuota', { numberOfKeys: 1, lua: changeScript });
  client.defineCommand('confirmTold', { numberOfKeys: 1, lua: confirmScript });

  return {
    async decide(calls) {
      const [first] = calls;
      if (first === undefined || !redis.isReady(nameOf(first.keyId))) return calls.map(() => notConnected);
      const arrived: QuotaReply[] = [];
      // A Cluster refuses a script whose keys are in several slots.
      const together = redis.oneServer ? deps.keysPerCallMax : 1;
      // ioredis sends the source of the script again when Redis no longer has it.
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

    liftBan: (keyId, bans) => change('lift', keyId, String(bans.maxMs)),
    reset: (keyId, bans) => change('reset', keyId, String(bans.maxMs), ...planWindows),
    setGrant: (keyId, grant) => change('grant', keyId, grant === undefined ? '' : packGrant(grant)),

    async confirmTold(keyId, { window, index, percent, resetMs }) {
      const name = nameOf(keyId);
      if (!redis.isReady(name)) return notConnected;
      const confirmed = client
        .confirmTold(name, window, index, percent, resetMs)
        .then((reply): ToldConfirmed => ({ kind: 'confirmed', isStored: reply === 1 }));
      return withinDeadline<ToldConfirmed | StoreFailure>(
        confirmed.catch(toFailure),
        patientDeadlineMs,
        () => late,
      );
    },
  };

  function nameOf(keyId: string): string {
    return redisKeys.quota.name(prefix, keyId);
  }

  async function readOne(name: string): Promise<QuotaState> {
    if (!redis.isReady(name)) throw new Error(notConnected.reason);
    return stateOf(await client.hgetallBuffer(name));
  }

  /** Calls the script once. @param arrived the list to which the replies are written, from the index `from` */
  function run(calls: readonly QuotaCall[], from: number, arrived: QuotaReply[]): Promise<void> {
    const args = [String(calls.length)];
    for (const { keyId } of calls) args.push(nameOf(keyId));
    let before: Terms | undefined;
    for (const call of calls) {
      const { limits, trial, generation, unsent, concurrency } = call;
      const terms = termsOf(call);
      if (terms === before || terms.text === before?.text) args.push('');
      else args.push(...terms.args);
      before = terms;
      args.push(askedArgument(call), generation === undefined ? '' : String(generation));
      const flag = unsent === undefined ? '0' : '1';
      args.push(concurrency === undefined ? flag : `${flag} ${leaseArgument(concurrency)}`);
      if (unsent === undefined) continue;
      args.push(...unsentArguments(unsent, limits));
      if (trial !== undefined) args.push(...unsentArguments(unsent.trial ?? unsent, limits));
    }
    // The counts of a trial are octets, which are not UTF-8.
    const isTried = calls.some(({ trial }) => trial !== undefined);
    const called = isTried ? client.decideQuotasBuffer(...args) : client.decideQuotas(...args);
    return called.then(
      (reply) => readReplies(reply, calls, from, arrived),
      (error) => {
        const failure = toFailure(error);
        for (let index = 0; index < calls.length; index++) arrived[from + index] = failure;
      },
    );
  }

  async function change(verb: 'lift' | 'reset' | 'grant', keyId: string, ...args: string[]) {
    const name = nameOf(keyId);
    if (!redis.isReady(name)) return notConnected;
    const changed = client
      .changeQuotaBuffer(name, verb, ...args)
      .then(([nowMs, ...flat]): QuotaChanged => ({ kind: 'changed', nowMs, state: stateOf(toHash(flat)) }));
    return withinDeadline<QuotaChanged | StoreFailure>(
      changed.catch(toFailure),
      patientDeadlineMs,
      () => late,
    );
  }

  /** Returns the script arguments that are the same in every call for a key. These arguments are converted to strings only once. */
  function termsOf({ limits, trial, bans, thresholds }: QuotaCall): Terms {
    const lowest = thresholds?.[0];
    const known = termsOfLimits.get(limits);
    if (known?.bans === bans && known.lowest === lowest && known.trial === trial) return known;
    const windows = limits.flatMap(({ window, max }) => [window, windowsMs[window], limitArgument(max)]);
    const count = trial === undefined ? limits.length : -(limits.length + 8 * windowBits(limits));
    const head = lowest === undefined ? count : `${count} ${lowest}`;
    const tried = trial?.map(({ max }) => limitArgument(max)) ?? [];
    const { after, withinMs, forMs, maxMs } = bans;
    const args = [head, after, withinMs, forMs, maxMs, ...windows, ...tried].map(String);
    const terms = { bans, lowest, trial, args, text: args.join(' ') };
    termsOfLimits.set(limits, terms);
    return terms;
  }
}

function readScript(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

interface Terms {
  readonly bans: BanPolicy;
  /** The lowest threshold, in percent; undefined without thresholds. */
  readonly lowest: number | undefined;
  readonly trial: Limits | undefined;
  readonly args: readonly string[];
  /** All arguments as one text, which is compared with the text of another key. */
  readonly text: string;
}

/** A window that only the trial limits has the limit `inf` in the plan, and the other way round. */
function limitArgument(max: number): number | 'inf' {
  return max === Number.POSITIVE_INFINITY ? 'inf' : max;
}

function askedArgument(asked: Asked): string {
  const { requests, units, later } = asked;
  if (later === undefined)
    return units === 1 && asked.trialUnits === undefined ? String(requests) : runArgument(asked);
  let text = runArgument(asked);
  for (const run of later) text += `,${runArgument(run)}`;
  return text;
}

function runArgument({ requests, units, trialUnits }: Run): string {
  return trialUnits === undefined ? `${requests}*${units}` : `${requests}*${units}*${trialUnits}`;
}

function leaseArgument({ max, process, active, leaseMs }: Concurrency): string {
  return `${max} ${process} ${active} ${leaseMs}`;
}

function unsentArguments(unsent: Unsent, limits: Limits): string[] {
  const { strikes, bannedUntilMs, banLevel, liftedMs, resetMs } = unsent;
  const uses = limits.flatMap(({ window }) => [unsent[window], unsent[usedIn[window]]]);
  return [strikes, bannedUntilMs, banLevel, liftedMs, resetMs, ...uses].map(String);
}

const late: StoreFailure = { kind: 'failed', mayHaveRun: true, reason: 'no reply within the deadline' };
const stale: StaleKey = Object.freeze({ kind: 'stale' });
const notConnected: StoreFailure = { kind: 'failed', mayHaveRun: false, reason: 'not connected' };

/** Parses the reply of `decide-quota.lua`. */
function readReplies(
  reply: ScriptReply,
  calls: readonly QuotaCall[],
  from: number,
  arrived: QuotaReply[],
): void {
  const parts = { reply, at: 1 };
  const nowMs = Number(reply[0]);
  for (const [index, call] of calls.entries()) {
    const first = reply[parts.at];
    if (typeof first !== 'number') {
      arrived[from + index] = toRefusal(String(first));
      parts.at += 1;
    } else if (first === -1) {
      arrived[from + index] = stale;
      parts.at += 1;
    } else arrived[from + index] = { kind: 'decided', outcome: toOutcome(nowMs, parts, call) };
  }
}

/** A reply and the index of the next part. */
interface Parts {
  readonly reply: ScriptReply;
  at: number;
}

function toOutcome(nowMs: number, parts: Parts, call: QuotaCall): QuotaOutcome {
  const { reply } = parts;
  const next = () => Number(reply[parts.at++]);
  const [admitted, refused, banned] = [next(), next(), next()];
  const state: QuotaState = {
    ...emptyQuotaState,
    strikes: next(),
    strikesFromMs: next(),
    bannedUntilMs: next(),
    banLevel: next(),
    liftedMs: next(),
    resetMs: next(),
  };
  for (const { window } of call.limits) {
    state[window] = next();
    state[usedIn[window]] = next();
  }
  const grant = reply[parts.at++];
  if (typeof grant !== 'number') state.grant = unpackGrant(String(grant));
  const told = call.thresholds?.[0] === undefined ? 0 : reply[parts.at++];
  if (typeof told !== 'number') state.told = unpackTold(String(told));
  const reached = typeof told === 'number' ? undefined : reachedIn(state, call, nowMs);
  const decided = {
    ...{ nowMs, admitted, refused, banned, ...(call.concurrency && { crowded: next() }) },
    ...(reached && { reached }),
    state,
  };
  const outcome = call.later === undefined ? decided : { ...decided, admittedOf: runsIn(parts, call) };
  return call.trial === undefined ? outcome : { ...outcome, trial: trialIn(parts, outcome, call) };
}

/** Returns the number of admitted requests of each run. The reply lists the runs only if the call has several runs. */
function runsIn(parts: Parts, { later = [] }: Asked): number[] {
  const from = parts.at;
  parts.at += later.length + 1;
  return parts.reply.slice(from, parts.at).map(Number);
}

/** Parses the outcome of the trial, and sets the counts of the trial in the state of the outcome. */
function trialIn(parts: Parts, outcome: QuotaOutcome, call: QuotaCall): TrialDecided {
  const { reply } = parts;
  const { nowMs, admitted, admittedOf } = outcome;
  const state: QuotaState = outcome.state;
  const isOwn = reply[parts.at] === -1;
  if (isOwn) parts.at += 1;
  const packed = reply[parts.at++];
  if (Buffer.isBuffer(packed)) state.trial = unpackTrial(packed);
  const own = trialStateOf(state, call.limits);
  endStrikes(own, call.bans, nowMs);
  if (!isOwn) return { admitted, refused: 0, banned: 0, ...(admittedOf && { admittedOf }), state: own };
  const next = () => Number(reply[parts.at++]);
  return {
    ...{ admitted: next(), refused: next(), banned: next() },
    ...(call.later && { admittedOf: runsIn(parts, call) }),
    state: own,
  };
}

function toHash(flat: readonly (Buffer | number)[]): Record<string, Buffer> {
  const hash: Record<string, Buffer> = {};
  for (let i = 0; i < flat.length; i += 2) hash[String(flat[i])] = flat[i + 1] as Buffer;
  return hash;
}

/** Converts a Redis hash to a state. The fields of the hash have the names of the members. */
function stateOf(hash: Readonly<Record<string, Buffer>>): QuotaState {
  const grant = hash.grant === undefined ? undefined : unpackGrant(String(hash.grant));
  const state: QuotaState = { ...emptyQuotaState, grant, told: unpackTold(String(hash.told ?? '')) };
  if (hash.trial !== undefined) state.trial = unpackTrial(hash.trial);
  for (const field of numberFields) state[field] = Number(hash[field] ?? 0);
  return state;
}

const numberFields = Object.keys(emptyQuotaState).filter(
  (field) => field !== 'grant' && field !== 'told',
) as Exclude<keyof QuotaState, 'grant' | 'told' | 'trial'>[];

/**
 * Makes the hash field of a grant: `<untilMs> <window> <limit> …`. A grant that starts later also has `from <fromMs>`. A grant that exempts
 * the key from brownouts also has `brownouts 0`, which the script and earlier versions of the gateway ignore.
 */
function packGrant({ limits, fromMs, untilMs, noBrownouts }: Grant): string {
  const from = fromMs === undefined ? [] : ['from', fromMs];
  const exempt = noBrownouts ? ['brownouts', 0] : [];
  return [untilMs, ...limits.flatMap(({ window, max }) => [window, max]), ...from, ...exempt].join(' ');
}

function unpackGrant(packed: string): Grant {
  const [untilMs, ...parts] = packed.split(' ');
  const numberOf = (name: string) => {
    const at = parts.indexOf(name);
    return at === -1 ? undefined : Number(parts[at + 1]);
  };
  const limits = planWindows.flatMap((window) => {
    const max = numberOf(window);
    return max === undefined ? [] : [{ window, max }];
  });
  const noBrownouts = numberOf('brownouts') === 0 || undefined;
  return { limits, fromMs: numberOf('from'), untilMs: Number(untilMs), ...(noBrownouts && { noBrownouts }) };
}

/** Texts are Buffers if a call of the reply has a trial. */
type ScriptReply = readonly (number | string | Buffer)[];

function toFailure(error: Error): StoreFailure {
  if (error instanceof ReplyError) return toRefusal(error.message);
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
    decideQuotas(...countKeysAndArgs: string[]): Result<ScriptReply, Context>;
    confirmTold(
      key: string,
      ...windowIndexPercentAndReset: [string, number, number, number]
    ): Result<number, Context>;
    decideQuotasBuffer(...countKeysAndArgs: string[]): Result<ScriptReply, Context>;
    changeQuotaBuffer(key: string, verb: string, ...args: string[]): Result<[number, ...Buffer[]], Context>;
  }
}
