import {
  countedEarlier,
  soloCheckersMax,
} from '../../../gateway/request/forward/upstream/fleet/fleet-health.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { type KeyGroup, sumOver } from './key-groups.ts';
import type { Costs } from './unit-costs.ts';

/** The requests that a fleet receives, and the features of the gateway that these requests use. */
export interface Traffic {
  readonly requestsPerSecond: number;
  readonly groups: readonly KeyGroup[];
  /** The share of each key's requests that are refused. */
  readonly refusedShare: number;
  /** Whether the keys are in the directory instead of the configuration. */
  readonly directory: boolean;
  readonly recorded: boolean;
}

export interface Fleet {
  readonly processes: number;
  /** The number of processes that serve a key: all processes, unless the load balancer routes by key. */
  readonly perKey: number;
  /** The number of masters of the Cluster. */
  readonly shards: number;
  readonly replicas: number;
  /** The number of backend addresses. All processes share the checks of each address. */
  readonly targets: number;
}

/** The figures per second for the whole fleet. CPU is in CPU seconds per second, which is the number of cores. */
export interface Load {
  readonly decisions: number;
  /** The batches of the usage record, and the calls that add these batches. */
  readonly batches: number;
  readonly batchCalls: number;
  readonly lookUps: number;
  /** The number of entries in the index of active keys. */
  readonly activeEntries: number;
  readonly checks: number;
  /** The calls in which processes share the results of their health checks. */
  readonly healthCalls: number;
  readonly gatewayCpu: GatewayCpu;
  /** The CPU of all masters. */
  readonly redisCpu: RedisCpu;
  readonly redisOctets: number;
  /** The octets from masters to all their replicas. */
  readonly replicationOctets: number;
  /** The key with the most requests. */
  readonly hottest: {
    readonly requests: number;
    readonly calls: number;
    /** The CPU of all its processes. */
    readonly gatewayCpu: number;
    readonly redisCpu: number;
  };
  /** The numbers of keys that one process keeps in memory. */
  readonly held: {
    readonly recorded: number;
    readonly remembered: number;
    /** The keys of the directory that a process caches as objects, and the packed keys. */
    readonly directory: number;
    readonly packed: number;
  };
}

interface GatewayCpu {
  readonly requests: number;
  readonly calls: number;
  readonly record: number;
  readonly lookUps: number;
  readonly checks: number;
}

interface RedisCpu {
  readonly decisions: number;
  readonly record: number;
  readonly lookUps: number;
  readonly replicas: number;
  readonly idle: number;
  /**
   * The CPU of four lists: the list of processes, the failing targets, the record of all operations, and the index of active keys. Each
   * list is in one slot.
   */
  readonly presence: number;
  readonly health: number;
  readonly operations: number;
  readonly activeIndex: number;
}

const seconds = (ms: number) => ms / 1_000;
const flushSeconds = seconds(defaultBounds.usageFlushIntervalMs);
const heldSeconds = flushSeconds * defaultBounds.usageIdleRoundsMax;
const notedSeconds = seconds(defaultBounds.usageActiveNotedMs);
/** The number of entries that a process adds to the index of active keys in a second, at most. */
const activeEntriesMax = defaultBounds.usageActiveKeysMax / notedSeconds;
/** The time after which a process reads a cached key again, although the key has not changed. */
const generationSeconds = seconds(defaultBounds.directoryGenerationKeptMs);
const refusalSeconds = seconds(defaultBounds.refusalRememberedMs);
/** The interval at which a process counts the processes that check its targets. */
const checkersSeconds = seconds(defaultBounds.healthCheckersPeriodMs * countedEarlier);
/** The number of senders that a usage record stores, as in `usage/store/add-counts.lua`. */
export const sendersMax = 128;

/**
 * Computes the load of a fleet. The load balancer of the fleet distributes the requests of a key equally among the processes that serve the
 * key.
 */
export function loadOf(traffic: Traffic, fleet: Fleet, costs: Costs): Load {
  const { requestsPerSecond, groups, refusedShare, directory, recorded } = traffic;
  const { processes, shards, replicas, targets } = fleet;
  const perKey = Math.min(fleet.perKey, processes);
  /** The requests of a key per second in one process. */
  const rateOf = ({ share }: KeyGroup) => (share * requestsPerSecond) / perKey;
  const overAll = (perProcess: (rate: number) => number) =>
    perKey * sumOver(groups, (group) => perProcess(rateOf(group)));

  const decisionsOf = (rate: number) => callsOf(rate, refusedShare, costs);
  const decisions = overAll(decisionsOf);
  const batches = recorded ? batchesOf(groups, rateOf, perKey, processes) : 0;
  const batchCalls = processes * batchCallsOf(batches / processes, shards);
  const activeEntries = recorded
    ? Math.min(
        overAll((rate) => renewals(notedSeconds, rate)),
        processes * activeEntriesMax,
      )
    : 0;
  const cacheWith = (keysMax: number) => cacheOf(groups, rateOf, perKey / processes, keysMax);
  const cache = cacheWith(cachedKeysMax(costs));
  const objects = cacheWith(defaultBounds.directoryCachedKeysMax);
  const unpacked = directory ? overAll((rate) => rate * Math.exp(-rate * objects.seconds)) : 0;
  // A request needs a look-up if its key was evicted since the key's last request, or if Redis no longer has the key's generation.
  const lookUps = directory
    ? overAll((rate) => rate * Math.exp(-rate * cache.seconds) + renewals(generationSeconds, rate))
    : 0;
  const checks = targets * checksATarget(processes);
  const healthCalls = processes > soloCheckersMax ? processes / seconds(defaultBounds.healthPauseMs) : 0;

  // In each turn, one read receives all calls to one server, and one write sends all replies.
  const callsATurn = (decisions * costs.turnSeconds) / (processes * shards);
  const readShare = readShareOf(callsATurn);
  const seen = (within: number) => overAll((rate) => shareSeenWithin(within, rate)) / processes;
  const [hot] = groups;
  const hotRate = hot === undefined ? 0 : rateOf(hot);
  const hotCalls = perKey * decisionsOf(hotRate);
  const operations = recorded ? processes / flushSeconds : 0;
  const senders = Math.min(perKey, sendersMax);

  return {
    decisions,
    batches,
    batchCalls,
    lookUps,
    activeEntries,
    checks,
    healthCalls,
    gatewayCpu: {
      requests: requestsPerSecond * ((1 - refusedShare) * costs.requestCpu + refusedShare * costs.refusedCpu),
      calls: decisions * (costs.callCpu + readShare * costs.callReadCpu),
      record: batches * costs.batchCpu + batchCalls * costs.callReadCpu,
      lookUps: lookUps * costs.lookUpCpu + unpacked * costs.unpackCpu,
      checks: checks * costs.checkCpu + healthCalls * (costs.callCpu + costs.callReadCpu),
    },
    redisCpu: {
      decisions: decisions * (costs.decisionCpu + readShare * costs.readCpu),
      record: batches * (costs.usageCpu + senders * costs.senderCpu) + batchCalls * costs.readCpu,
      lookUps: lookUps * costs.readKeyCpu,
      replicas: (decisions + batches) * replicas * costs.replicaCpu,
      idle: shards * costs.serverCpu,
      presence: processes * costs.presenceCpu,
      health: healthCalls * costs.healthCpu + ((processes * targets) / checkersSeconds) * costs.checkerCpu,
      operations: operations * costs.operationsCpu,
      activeIndex: activeEntries * costs.activeKeyCpu,
    },
    redisOctets:
      decisions * costs.decisionOctets + batches * costs.usageOctets + lookUps * costs.lookUpOctets,
    replicationOctets: replicas * (decisions * costs.decisionReplicated + batches * costs.usageReplicated),
    hottest: {
      requests: hotRate * perKey,
      calls: hotCalls,
      // A process has one call for a key under way, so each call has its own read and write.
      gatewayCpu: hotRate * perKey * costs.requestCpu + hotCalls * (costs.callCpu + costs.callReadCpu),
      redisCpu: hotCalls * (costs.hotDecisionCpu + costs.readCpu + replicas * costs.replicaCpu),
    },
    held: {
      // A recorder with too many keys drops a key as soon as it has sent all counts of the key.
      recorded: recorded
        ? Math.min(seen(heldSeconds), Math.max(defaultBounds.usageKeysMax, seen(2 * flushSeconds)))
        : 0,
      remembered: Math.min(
        sumOver(groups, () => 1),
        defaultBounds.rememberedKeysMax,
      ),
      directory: directory ? Math.min(cache.keys, defaultBounds.directoryCachedKeysMax) : 0,
      packed: directory ? Math.max(0, cache.keys - defaultBounds.directoryCachedKeysMax) : 0,
    },
  };
}

/**
 * The number of health checks per second that a healthy target gets from all processes (`request/forward/upstream/README.md`). The duration of
 * the check itself is negligible.
 */
export function checksATarget(processes: number): number {
  const { healthPauseMs, healthFleetPauseMs, healthOwnPauseMaxMs, healthTurnMs } = defaultBounds;
  const shared = Math.max(
    Math.min(healthFleetPauseMs * processes, healthOwnPauseMaxMs),
    healthTurnMs * processes,
  );
  return processes / seconds(processes > soloCheckersMax ? Math.max(healthPauseMs, shared) : healthPauseMs);
}

/**
 * The number of batches of the usage record per second. A process flushes its keys in rounds. It sends a key if at least
 * `usageQuietRequestsMax` requests are unsent, or if the key has waited for `usageQuietRounds` rounds. A process sends
 * keys earlier if more than `usageKeysMax` keys would wait.
 */
function batchesOf(
  groups: readonly KeyGroup[],
  rateOf: (group: KeyGroup) => number,
  perKey: number,
  processes: number,
): number {
  const within = (roundsMax: number) =>
    perKey * sumOver(groups, (group) => batchesOfKey(rateOf(group), roundsMax));
  /** The number of keys with unsent counts, in a process that sends each key after this number of rounds. */
  const waiting = (rounds: number) => (rounds * flushSeconds * within(rounds)) / processes;
  let [low, high]: [number, number] = [1, defaultBounds.usageQuietRounds];
  if (waiting(high) <= defaultBounds.usageKeysMax) return within(high);
  // An error of a hundredth of a round is negligible.
  while (high - low > 0.01) {
    const middle = (low + high) / 2;
    if (waiting(middle) > defaultBounds.usageKeysMax) high = middle;
    else low = middle;
  }
  return within(low);
}

/**
 * The number of batches per second of one key in one process.
 *
 * @param roundsMax the number of rounds after which a quiet key is sent, which may have a fraction
 */
function batchesOfKey(rate: number, roundsMax: number): number {
  const isAny = shareSeenWithin(flushSeconds, rate);
  if (isAny === 0) return 0;
  const roundsWithout = (1 - isAny) / isAny;
  let rounds = 1;
  for (let round = 1; round < roundsMax; round++) {
    const isQuiet = poissonBelow(defaultBounds.usageQuietRequestsMax, rate * round * flushSeconds);
    if (isQuiet < 1e-9) break;
    rounds += Math.min(1, roundsMax - round) * isQuiet;
  }
  return 1 / ((roundsWithout + rounds) * flushSeconds);
}

/**
 * The number of calls per second that add the batches of one process. In each turn, a process sends the keys of one slice, which are on
 * neighbouring slots, and a call has at most `usageRecordsPerCallMax` batches of one server.
 */
function batchCallsOf(batches: number, shards: number): number {
  const { usageSlicesPerFlush: slices, usageRecordsPerCallMax: together } = defaultBounds;
  const turns = slices / flushSeconds;
  const servers = 1 + (shards - 1) / slices;
  const ofServer = batches / turns / servers;
  let calls = 0;
  for (let full = 0; ; full += together) {
    const isMore = 1 - poissonBelow(full + 1, ofServer);
    calls += isMore;
    if (isMore < 1e-9) return turns * servers * calls;
  }
}

/** The probability that fewer than `count` events happen, if their number follows a Poisson distribution with this mean. */
function poissonBelow(count: number, mean: number): number {
  // With a large mean, exp(-mean) would be 0. The distribution is then so narrow that its mean decides.
  if (mean > 600) return mean < count ? 1 : 0;
  let term = Math.exp(-mean);
  let sum = 0;
  for (let events = 0; events < count; events++) {
    sum += term;
    term *= mean / (events + 1);
  }
  return Math.min(1, sum);
}

/**
 * The number of socket reads divided by the number of calls. The number of calls in a turn follows a Poisson distribution.
 *
 * @param callsATurn the average number of calls in a turn
 */
export function readShareOf(callsATurn: number): number {
  return callsATurn === 0 ? 1 : -Math.expm1(-callsATurn) / callsATurn;
}

/** The memory that a process needs for packed keys of the directory, in octets outside of its heap. */
export function packedBytes({ held }: Load, costs: Costs): number {
  return held.packed * costs.packedKeyBytes;
}

/** The memory that a process needs for keys, in octets of its heap. */
export function heldBytes({ held }: Load, costs: Costs): number {
  return (
    held.recorded * costs.recordedKeyBytes +
    held.remembered * costs.rememberedKeyBytes +
    held.directory * costs.heldKeyBytes
  );
}

/** The total CPU of all gateways, or of all Redis masters. */
export function total(parts: GatewayCpu | RedisCpu): number {
  return Object.values(parts).reduce((sum, part) => sum + part, 0);
}

/**
 * The number of decision calls per second that one process makes for one key. Requests of one turn of the event loop share a call, and
 * turns are at least `turnSeconds` apart. A turn makes a call if at least one request has arrived since the last turn (Poisson). After a
 * refusal, the process refuses the key from memory for one second. The process counts these refusals, and reports fifty refusals to Redis
 * in one call.
 */
export function callsOf(
  rate: number,
  refusedShare: number,
  { turnSeconds }: Pick<Costs, 'turnSeconds'>,
): number {
  const admitted = rate * (1 - refusedShare);
  const refused = rate * refusedShare;
  const asked = shareSeenWithin(turnSeconds, admitted) / turnSeconds;
  return (
    asked + Math.min(refused, renewals(refusalSeconds, refused) + refused / defaultBounds.strikesPerReportMax)
  );
}

/** The probability that an event with a given rate per second happens within a given number of seconds (Poisson). */
export function shareSeenWithin(within: number, rate: number): number {
  return -Math.expm1(-within * rate);
}

/** The rate of an action that a request triggers. After each action, no request triggers the action again for `pause` seconds. */
function renewals(pause: number, rate: number): number {
  return rate / (1 + pause * rate);
}

/** The number of keys of the directory that a process can cache. */
function cachedKeysMax({ packedKeyBytes }: Costs): number {
  const { directoryCachedKeysMax, directoryPackedBytesMax } = defaultBounds;
  return directoryCachedKeysMax + (packedKeyBytes === 0 ? 0 : directoryPackedBytesMax / packedKeyBytes);
}

/**
 * A cache of at most `keysMax` keys in a process: the number of cached keys, and the time after which an unused key is evicted (Che's
 * approximation of a cache that evicts the least recently used key). The time is Infinity if the cache has room for all keys.
 *
 * @param served the share of all keys that a process serves
 */
function cacheOf(
  groups: readonly KeyGroup[],
  rateOf: (group: KeyGroup) => number,
  served: number,
  keysMax: number,
): { readonly keys: number; readonly seconds: number } {
  const servedKeys = served * sumOver(groups, () => 1);
  if (servedKeys <= keysMax) return { keys: servedKeys, seconds: Number.POSITIVE_INFINITY };
  const seenWithin = (time: number) =>
    served * sumOver(groups, (group) => shareSeenWithin(time, rateOf(group)));
  let [low, high] = [0, 1];
  while (seenWithin(high) < keysMax && high < generationSeconds) high *= 2;
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (seenWithin(middle) > keysMax) high = middle;
    else low = middle;
  }
  return { keys: keysMax, seconds: low };
}
