import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../../../../redis/redis-connection.ts';
import { redisKeys } from '../../../../redis/redis-keys.ts';
import { replyOrUndefined } from '../../../../redis/redis-reply.ts';
import type { Bounds } from '../../../../shared/timeouts-and-sizes.ts';

/** The fleet's opinion about a target with failed checks. A `suspected` target is failing for some processes only. */
type FleetOpinion =
  | { readonly kind: 'suspected' }
  | { readonly kind: 'failing'; readonly health: 'silent' | 'down'; readonly reason: string };

/** The result of a health check. */
interface CheckResult {
  readonly health: 'healthy' | 'silent' | 'down';
  readonly reason: string | undefined;
  /** The end of a passed check or the beginning of a failed check, on the clock of `performance.now()`. */
  readonly atMs: number;
}

/** A target whose health checks a process shares with other processes. */
export interface SharedTarget {
  /** The number of processes that check the target, including this process; 1 while Redis is away. */
  checkers(): number;
  /** Undefined for a target without failed checks, and while Redis is away. */
  opinion(): FleetOpinion | undefined;
  report(result: CheckResult): void;
  /**
   * Whether a check of a process has passed after the last failure that this process reported. False until Redis has received the report.
   */
  hasPassedSince(): boolean;
  /** Stops sharing. */
  leave(): void;
}

export type FleetHealth = ReturnType<typeof createFleetHealth>;

/** Called when the fleet begins to treat a target as failing, and when the target has recovered; not when Redis loses data or goes away. */
type OnOpinion = (opinion: Extract<FleetOpinion, { kind: 'failing' }> | undefined) => void;

/** The state of a target in Redis. A `recovered` target has passed its checks again. */
type Stored = FleetOpinion | { readonly kind: 'recovered' };

interface Entry {
  readonly listeners: Set<OnOpinion>;
  /** Undefined if Redis has stored nothing about the target, and while Redis is away. */
  stored: Stored | undefined;
  /** When this process last reported a failure, on the clock of `performance.now()`; Infinity before, and when the report may be lost. */
  reportedMs: number;
  checkers: number;
  /** The last period in which this process was counted; 0 before. */
  countedPeriod: number;
  /** The number of checkers that is assumed before all processes have been counted, and how long. */
  readonly assumed: { readonly checkers: number; readonly untilMs: number };
}

const [shareScript, countScript] = ['share-health.lua', 'count-checkers.lua'].map((file) =>
  readFileSync(new URL(file, import.meta.url), 'utf8'),
) as [string, string];

/** A result as `share-health.lua` needs it, except for its age. */
interface Report extends CheckResult {
  readonly id: string;
  readonly reason: string;
  /** The number of processes that must agree. */
  readonly agreeing: number;
}

/** Up to this number of processes do not share their checks of a target. Together they check the target at most ten times a second. */
export const soloCheckersMax = 2;

/** A process is counted at intervals of this share of a period, so that it misses no period. */
export const countedEarlier = 0.9;

/**
 * Shares the results of health checks with other processes, so that each of N processes needs to make only a part of the checks.
 * `../README.md` states what counts as evidence. No request waits for Redis here.
 */
export function createFleetHealth({
  records,
  processId,
  bounds,
  random = Math.random,
}: {
  readonly records: RedisConnection;
  readonly processId: string;
  readonly bounds: Bounds;
  readonly random?: () => number;
}) {
  const { commands: client, prefix } = records;
  const failingName = redisKeys.healthFailing.name(prefix);
  client.defineCommand('shareHealth', { numberOfKeys: 1, lua: shareScript });
  client.defineCommand('countCheckers', { lua: countScript });
  const entries = new Map<string, Entry>();
  let reports: Report[] = [];
  /** The version of the list of failing targets that this process has; undefined while Redis is away. */
  let version: string | undefined;
  /** When the last exchange began to which Redis replied. */
  let exchangedMs = Number.NEGATIVE_INFINITY;
  let countAtMs = Number.NEGATIVE_INFINITY;
  /** The pause before the next count. It is short after the start, because other processes may start at the same time. */
  let countPauseMs = 0;
  let timer: NodeJS.Timeout | undefined;
  let isBusy = false;
  let isUrgent = false;
  let isClosed = false;

  function schedule(pauseMs: number): void {
    clearTimeout(timer);
    if (!isClosed) timer = setTimeout(() => void exchange(), Math.max(0, pauseMs)).unref();
  }

  function hurry(): void {
    isUrgent = true;
    if (!isBusy) schedule(0);
  }

  async function exchange(): Promise<void> {
    isBusy = true;
    isUrgent = false;
    let isShared = false;
    try {
      const isAnswered = performance.now() < countAtMs || (await count());
      isShared = [...entries.values()].some(({ checkers }) => checkers > soloCheckersMax);
      if (isAnswered && isShared) await share();
      else forget();
    } finally {
      isBusy = false;
      const sharePauseMs = bounds.healthPauseMs * (0.9 + 0.2 * random());
      schedule(isUrgent ? 0 : isShared ? sharePauseMs : countAtMs - performance.now());
    }
  }

  /** Forgets what the fleet has reported. Until the next exchange, this process checks as often as a single process. */
  function forget(): void {
    version = undefined;
    reports = [];
    for (const entry of entries.values()) {
      entry.stored = undefined;
      entry.reportedMs = Number.POSITIVE_INFINITY;
    }
  }

  /** @returns whether Redis has replied */
  async function count(): Promise<boolean> {
    const nowMs = performance.now();
    const longestPauseMs = bounds.healthCheckersPeriodMs * countedEarlier;
    countPauseMs = Math.min(Math.max(2 * countPauseMs, bounds.healthPauseMs), longestPauseMs);
    countAtMs = nowMs + countPauseMs;
    const ids = [...entries.keys()];
    for (let start = 0; start < ids.length; start += bounds.healthCheckersAtOnce) {
      const part = ids.slice(start, start + bounds.healthCheckersAtOnce);
      const names = part.map((id) => redisKeys.healthCheckers.name(prefix, id));
      const counted = part.map((id) => entries.get(id)?.countedPeriod ?? 0);
      const call = () =>
        client.countCheckers(names.length, ...names, bounds.healthCheckersPeriodMs, ...counted);
      const reply = await replyOrUndefined(records, names, call, bounds.healthExchangeDeadlineMs);
      if (reply === undefined) return false;
      const [period = 0, ...numbers] = reply;
      for (const [index, id] of part.entries()) {
        const entry = entries.get(id);
        if (entry === undefined) continue;
        const { assumed } = entry;
        entry.countedPeriod = period;
        entry.checkers = Math.max(numbers[index] ?? 1, nowMs < assumed.untilMs ? assumed.checkers : 1);
      }
    }
    return true;
  }

  async function share(): Promise<void> {
    const nowMs = performance.now();
    const sent = reports.flatMap(({ id, health, atMs, agreeing, reason }) => {
      const ageMs = Math.max(0, nowMs - atMs).toFixed(0);
      return [id, health, ageMs, agreeing, reason];
    });
    reports = [];
    const { healthFailingKeptMs, healthFailingMax, healthTimeoutMs } = bounds;
    const call = () =>
      client.shareHealth(
        failingName,
        processId,
        version ?? '',
        healthFailingKeptMs,
        healthFailingMax,
        healthTimeoutMs,
        ...sent,
      );
    const reply = await replyOrUndefined(records, [failingName], call, bounds.healthExchangeDeadlineMs);
    if (reply === undefined) {
      forget();
      return;
    }
    exchangedMs = nowMs;
    const [newVersion, ...list] = reply;
    if (newVersion === version) return;
    version = newVersion;
    const stored = new Map<string, Stored | undefined>();
    for (let i = 0; i < list.length; i += 2) stored.set(list[i] ?? '', parseEntry(list[i + 1] ?? ''));
    for (const [id, entry] of entries) adopt(entry, stored.get(id));
  }

  function adopt(entry: Entry, stored: Stored | undefined): void {
    const before = entry.stored?.kind;
    entry.stored = stored;
    if (stored?.kind === 'failing') {
      if (before !== 'failing') for (const listener of entry.listeners) listener(stored);
    } else if (before === 'failing' && stored !== undefined) {
      // A target that is missing from the list was lost with the data of Redis, so it has not recovered.
      for (const listener of entry.listeners) listener(undefined);
    }
  }

  function enter(id: string): Entry {
    const known = entries.get(id);
    if (known !== undefined) return known;
    // Other processes begin to check the target at about the same time and are not counted yet.
    const checkers = Math.max(1, ...[...entries.values()].map((each) => each.checkers));
    const untilMs = performance.now() + bounds.healthCheckersPeriodMs;
    const assumed = { checkers, untilMs };
    const entry = {
      listeners: new Set<OnOpinion>(),
      stored: undefined,
      reportedMs: Number.POSITIVE_INFINITY,
      checkers,
      countedPeriod: 0,
      assumed,
    };
    entries.set(id, entry);
    countAtMs = Number.NEGATIVE_INFINITY;
    countPauseMs = 0;
    // The fleet's opinion about the new target is in the list, which Redis sends only to a process with another version.
    if (version !== undefined) version = '';
    hurry();
    return entry;
  }

  /** @param id the same text in every process that checks the same target in the same way */
  function join(id: string, onOpinion: OnOpinion): SharedTarget {
    const entry = enter(id);
    // A separate function for each call, because a target may be in several upstreams.
    const listener: OnOpinion = (opinion) => onOpinion(opinion);
    entry.listeners.add(listener);
    const isShared = () => version !== undefined && entry.checkers > soloCheckersMax;
    const opinion = () => (entry.stored?.kind === 'recovered' ? undefined : entry.stored);
    return {
      checkers: () => (version === undefined ? Math.min(soloCheckersMax, entry.checkers) : entry.checkers),
      opinion,
      report({ health, reason = '', atMs }) {
        if (!isShared()) return;
        if (health !== 'healthy') entry.reportedMs = performance.now();
        const agreeing = Math.min(bounds.healthReportersMin, Math.ceil(entry.checkers / 2));
        reports.push({ id, health, atMs, agreeing, reason: reason.slice(0, bounds.healthReasonCharsMax) });
        const isNews = health === 'healthy' ? opinion() !== undefined : entry.stored?.kind !== 'failing';
        if (isNews) hurry();
      },
      // Redis ignores a failure that began before a passed check has ended. The stored failure is then over, too.
      hasPassedSince: () => entry.stored?.kind === 'recovered' && entry.reportedMs < exchangedMs,
      leave() {
        entry.listeners.delete(listener);
        if (entry.listeners.size === 0) entries.delete(id);
      },
    };
  }

  return {
    join,
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

function parseEntry(text: string): Stored | undefined {
  try {
    const { began, failing, health, reason } = JSON.parse(text);
    if (began === undefined) return { kind: 'recovered' };
    if (failing !== true) return { kind: 'suspected' };
    const source = `several gateway processes report: ${reason}`;
    return { kind: 'failing', health: health === 'down' ? 'down' : 'silent', reason: source };
  } catch {
    return undefined;
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    countCheckers(numberOfKeys: number, ...args: (string | number)[]): Result<number[], Context>;
    shareHealth(hash: string, ...args: (string | number)[]): Result<string[], Context>;
  }
}
