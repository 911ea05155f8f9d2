import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { type KeyGroup, sumOver } from './key-groups.ts';
import type { Costs } from './unit-costs.ts';

/** The requests that arrive, and the features that they use. */
export interface Traffic {
  readonly requestsPerSecond: number;
  readonly groups: readonly KeyGroup[];
  /** The share of each key's requests that its limits refuse. */
  readonly refusedShare: number;
  /** Whether keys are in the directory instead of the configuration. */
  readonly directory: boolean;
  readonly recorded: boolean;
}

export interface Fleet {
  readonly processes: number;
  /** The number of processes that serve a key: all of them, unless the balancer routes by key. */
  readonly perKey: number;
  /** Masters of the Cluster. */
  readonly shards: number;
  readonly replicas: number;
  /** Addresses of backends, each of which every process checks. */
  readonly targets: number;
}

/** Figures per second for the whole fleet. CPU is in seconds a second, which is the number of cores. */
export interface Load {
  readonly decisions: number;
  readonly batches: number;
  readonly lookUps: number;
  /** Entries in the index of active keys. */
  readonly activeEntries: number;
  readonly checks: number;
  readonly gatewayCpu: GatewayCpu;
  /** CPU of all masters. */
  readonly redisCpu: RedisCpu;
  readonly redisOctets: number;
  /** From masters to all their replicas. */
  readonly replicationOctets: number;
  /** The key with the most requests. */
  readonly hottest: { readonly requests: number; readonly calls: number; readonly redisCpu: number };
  /** Keys that one process keeps in memory. */
  readonly held: { readonly recorded: number; readonly remembered: number; readonly directory: number };
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
  /** CPU of single slots: the list of processes, the record of all operations, the index of active keys. */
  readonly presence: number;
  readonly operations: number;
  readonly activeIndex: number;
}

const seconds = (ms: number) => ms / 1_000;
const flushSeconds = seconds(defaultBounds.usageFlushIntervalMs);
const heldSeconds = flushSeconds * defaultBounds.usageIdleRoundsMax;
const notedSeconds = seconds(defaultBounds.usageActiveNotedMs);
const cachedSeconds = seconds(defaultBounds.directoryCachedMs);
const refusalSeconds = seconds(defaultBounds.refusalRememberedMs);
/** The pause between two checks of a target. The check itself takes no time compared with it. */
const checkSeconds = seconds(defaultBounds.healthPauseMs);
/** The same figure as in `usage/store/add-counts.lua`. */
export const sendersMax = 128;

/** The load of a fleet. Its balancer gives each process that serves a key an equal share of the key's requests. */
export function loadOf(traffic: Traffic, fleet: Fleet, costs: Costs): Load {
  const { requestsPerSecond, groups, refusedShare, directory, recorded } = traffic;
  const { processes, shards, replicas, targets } = fleet;
  const perKey = Math.min(fleet.perKey, processes);
  /** Requests of a key per second at one process. */
  const rateOf = ({ share }: KeyGroup) => (share * requestsPerSecond) / perKey;
  const overAll = (perProcess: (rate: number) => number) =>
    perKey * sumOver(groups, (group) => perProcess(rateOf(group)));

  const decisionsOf = (rate: number) => callsOf(rate, refusedShare, costs);
  const decisions = overAll(decisionsOf);
  const batches = recorded ? overAll((rate) => shareSeenWithin(flushSeconds, rate) / flushSeconds) : 0;
  const activeEntries = recorded ? overAll((rate) => renewals(notedSeconds, rate)) : 0;
  const usedSeconds = cacheSeconds(groups, rateOf, perKey / processes);
  const lookUps = directory ? overAll((rate) => renewals(usedSeconds, rate)) : 0;
  const checks = (processes * targets) / checkSeconds;

  // One read brings all calls of a turn to one server, and one write takes their replies.
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
    lookUps,
    activeEntries,
    checks,
    gatewayCpu: {
      requests: requestsPerSecond * ((1 - refusedShare) * costs.requestCpu + refusedShare * costs.refusedCpu),
      calls: decisions * (costs.callCpu + readShare * costs.callReadCpu),
      record: batches * costs.batchCpu,
      lookUps: lookUps * costs.lookUpCpu,
      checks: checks * costs.checkCpu,
    },
    redisCpu: {
      decisions: decisions * (costs.decisionCpu + readShare * costs.readCpu),
      record: batches * (costs.usageCpu + senders * costs.senderCpu),
      lookUps: lookUps * costs.readKeyCpu,
      replicas: (decisions + batches) * replicas * costs.replicaCpu,
      idle: shards * costs.serverCpu,
      presence: processes * costs.presenceCpu,
      operations: operations * costs.operationsCpu,
      activeIndex: activeEntries * costs.activeKeyCpu,
    },
    redisOctets:
      decisions * costs.decisionOctets + batches * costs.usageOctets + lookUps * costs.lookUpOctets,
    replicationOctets: replicas * (decisions * costs.decisionReplicated + batches * costs.usageReplicated),
    hottest: {
      requests: hotRate * perKey,
      calls: hotCalls,
      redisCpu: hotCalls * (costs.hotDecisionCpu + costs.readCpu + replicas * costs.replicaCpu),
    },
    held: {
      // A recorder above its bound drops a key as soon as it has sent all counts of the key.
      recorded: recorded
        ? Math.min(seen(heldSeconds), Math.max(defaultBounds.usageKeysMax, seen(2 * flushSeconds)))
        : 0,
      remembered: Math.min(
        sumOver(groups, () => 1),
        defaultBounds.rememberedKeysMax,
      ),
      directory: directory ? Math.min(seen(cachedSeconds), defaultBounds.directoryCachedKeysMax) : 0,
    },
  };
}

/** The share of calls with their own read, when a turn brings this number of calls on average (Poisson). */
export function readShareOf(callsATurn: number): number {
  return callsATurn === 0 ? 1 : -Math.expm1(-callsATurn) / callsATurn;
}

/** The memory that a process needs for keys, in octets of its heap. */
export function heldBytes({ held }: Load, costs: Costs): number {
  return (
    held.recorded * costs.recordedKeyBytes +
    held.remembered * costs.rememberedKeyBytes +
    held.directory * costs.heldKeyBytes
  );
}

/** The sum of the parts. */
export function total(parts: GatewayCpu | RedisCpu): number {
  return Object.values(parts).reduce((sum, part) => sum + part, 0);
}

/**
 * Decision calls of one process for one key, per second. Requests of one turn of the event loop share a call, and turns
 * are at least `turnSeconds` apart. With r requests a second, a turn has a call when at least one request has arrived
 * (Poisson). A refusal is repeated from memory for one second, and refusals are reported fifty at a time.
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

/** The probability that an event with this rate (per second) happens within this number of seconds (Poisson). */
export function shareSeenWithin(within: number, rate: number): number {
  return -Math.expm1(-within * rate);
}

/** The rate of an action that a request triggers, and that then pauses for this number of seconds. */
function renewals(pause: number, rate: number): number {
  return rate / (1 + pause * rate);
}

/**
 * The time for which a process caches a key: `directoryCachedMs`, or less when it reads more keys in that time than it
 * can hold (Che's approximation).
 *
 * @param served the share of all keys that a process serves
 */
function cacheSeconds(
  groups: readonly KeyGroup[],
  rateOf: (group: KeyGroup) => number,
  served: number,
): number {
  const readWithin = (time: number) =>
    served * sumOver(groups, (group) => time * renewals(time, rateOf(group)));
  let [low, high] = [0, cachedSeconds];
  if (readWithin(high) <= defaultBounds.directoryCachedKeysMax) return high;
  for (let step = 0; step < 40; step++) {
    const middle = (low + high) / 2;
    if (readWithin(middle) > defaultBounds.directoryCachedKeysMax) high = middle;
    else low = middle;
  }
  return low;
}
