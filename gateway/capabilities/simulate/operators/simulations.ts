import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { findKeys, type ListedKey } from '../../../admin/keys/find-keys.ts';
import type { KeySources } from '../../../admin/keys/key-sources.ts';
import { keptPeriod } from '../../../admin/operations/kept-period.ts';
import type { Changes } from '../../../fleet/changes.ts';
import { plansInForce } from '../../../keys/key-table.ts';
import { calendarStartMs, calendarWindowsMs, windowIndex } from '../../../shared/calendar-windows.ts';
import { groupNames, ofAllOperations } from '../../../shared/limits.ts';
import type { Limits } from '../../../shared/model.ts';
import { isoSecondOf, type Period } from '../../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { dayMs, minuteMs } from '../../../shared/words/figures.js';
import { type KeyMinutes, offeredAt, withRefused } from '../../../usage/read/key-minutes.ts';
import { type Tally, unitsOf } from '../../../usage/tally.ts';
import type { LoadAdvisors } from '../advisor.ts';
import { type Edits, isEdited, limitsThen, type Present } from '../replay/edits.ts';
import { refusedBounds, refusedByAnyGroup, replayGroups, withGroups } from '../replay/replay-groups.ts';
import { replayKey } from '../replay/replay-key.ts';
import type { EditedStep, ReplaySinks } from '../replay/replayed-key.ts';
import { type Verdict, VerdictBuilder } from '../replay/verdict.ts';
import type { Calendar, UsedEarlier } from '../replay/window-rooms.ts';
import { createGroupRecords, type LeftOut } from './group-records.ts';
import { editedStepsOver, readLimitHistory, termsIn } from './limit-history.ts';
import type { SimulatedMinute } from './wires.ts';

const calendar: Calendar = { minuteMs, windowsMs: calendarWindowsMs };

/** The number of keys whose usage records are read at the same time. */
const keysPerTurn = 10;
/** The number of recorded minutes that are replayed in one turn of the event loop. A turn takes about 2 ms. */
const minutesPerTurn = 50_000;

export interface Simulation {
  readonly period: Period;
  readonly edits: Edits;
  /** Only the keys of this plan are simulated. */
  readonly plan?: string | undefined;
  /** The last key of the previous part. The simulation continues after this key. */
  readonly after?: string | undefined;
  /** The last key to simulate. */
  readonly until?: string | undefined;
  readonly keysListed: number;
  /** The key whose minutes the response lists. */
  readonly minutesOf?: string | undefined;
}

export interface Simulated {
  /** The recorded part of the requested period. */
  readonly period: Period;
  readonly verdict: Verdict;
  /**
   * The number of active keys with a changed limit, or of all active keys if no limit is changed. `examinedKeys` is
   * the number of keys in this part.
   */
  readonly activeKeys: number;
  readonly examinedKeys: number;
  /** The last key of this part, if there are more keys. */
  readonly next?: string | undefined;
  readonly minutes?: readonly SimulatedMinute[] | undefined;
  readonly leftOut: readonly LeftOut[];
  /** Epoch ms; set if earlier changes of limits were not read. */
  readonly changesReadSinceMs?: number | undefined;
  /** Whether bounds of a key differ because it has groups. */
  readonly hasGroups?: true;
}

/**
 * Replays the usage record under other limits, one part at a time and for a limited time. The replay yields to the
 * event loop regularly. A limited number of records is cached for a short time, because an operator usually tries
 * several limits.
 */
export function createSimulations(
  sources: Omit<KeySources, 'readStatus'>,
  changes: Pick<Changes, 'read'>,
  advisors: LoadAdvisors,
): (simulation: Simulation) => Promise<Simulated | undefined> {
  const { settings, usage, nowMs, bounds } = sources;
  const keptPart = (period: Period) => keptPeriod(period, usage?.state() ?? { keptDays: 0 }, nowMs());
  const groupRecords = createGroupRecords(usage, keptPart);
  const kept = createKeptMinutes(bounds);

  return simulate;

  /** Simulates one part; the result is undefined when the store does not reply. */
  async function simulate({
    period: asked,
    edits,
    plan,
    after,
    until,
    keysListed,
    minutesOf,
  }: Simulation): Promise<Simulated | undefined> {
    const { bans } = settings();
    const present: Present = { plans: plansInForce(settings()), bans };
    const period = keptPart(asked);
    const active = usage === undefined ? [] : await usage.reader.active();
    if (active === undefined) return undefined;
    const isEdit = edits.plans.size > 0 || edits.keys.size > 0 || edits.bans !== undefined;
    const lately = active.filter(({ lastSeenMs }) => lastSeenMs >= period.fromMs).map(({ keyId }) => keyId);
    const found = await findKeys(sources, lately);
    if (found === undefined) return undefined;
    const history = await readLimitHistory(sources, changes, calendarStartMs('month', period.fromMs));
    const stepsOf = editedStepsOver(history, edits);
    const wanted = found
      .filter(({ key }) => key.limits.length > 0)
      .filter(({ key }) => (plan === undefined || key.plan === plan) && (!isEdit || isEdited(edits, key)))
      .sort((a, b) => (a.key.id < b.key.id ? -1 : 1));
    const left = wanted.filter(
      ({ key: { id } }) => (after === undefined || id > after) && (until === undefined || id <= until),
    );
    const builder = new VerdictBuilder(minuteMs);
    const advice = await Promise.all(advisors.map((load) => load()));
    const watchers = advice.map((advisor) => advisor.watch({ edits, present, period, calendar, bounds }));
    const minutes: SimulatedMinute[] = [];
    const leftOut: LeftOut[] = [];
    let hasGroups = false;
    const deadlineMs = performance.now() + bounds.simulationTimeoutMs;
    let [examined, minutesExamined] = [0, 0];
    // The records of a part fit into the cache. A simulation of the same part with other limits therefore needs no
    // reads.
    const isOver = () =>
      performance.now() >= deadlineMs || minutesExamined >= bounds.simulationMinutesKeptMax;
    while (examined < left.length && (examined === 0 || !isOver())) {
      const part = left.slice(examined, examined + keysPerTurn);
      const read = await readMinutes(part, stepsOf, period);
      if (read === undefined) return undefined;
      let replayed = 0;
      for (const { listed, steps, minutes: recorded, usedEarlier } of read) {
        const { key } = listed;
        const ofAllSteps = steps.map(({ fromMinute, present, edited }) => ({
          fromMinute,
          present: ofAllOperations(present),
          edited: ofAllOperations(edited),
        }));
        const replay = (minutes: KeyMinutes, sinks: ReplaySinks) =>
          replayKey(
            {
              ...{ minutes, usedEarlier, steps: ofAllSteps },
              fromMinute: Math.floor(period.fromMs / minuteMs),
              bans: { present: bans, edited: edits.bans ?? bans },
            },
            calendar,
            sinks,
          );
        const groups = await groupRecords.read(key, steps, limitsThen(key, edits), period);
        const left = groups && (await groupRecords.leftOutOf(key, edits, groups, period));
        if (groups === undefined || left === undefined) return undefined;
        leftOut.push(...left);
        const ofKey = watchers.flatMap((watcher) => watcher.ofKey(key, recorded, groups) ?? []);
        const ofAll = replay(recorded, {
          onDifference: (...difference) => builder.differs({ id: key.id, steps }, ...difference),
          onMinute:
            key.id === minutesOf ? (...minute) => minutes.push(minuteOf(recorded, ...minute)) : undefined,
          onRefused: together(ofKey.flatMap(({ onRefused }) => onRefused ?? [])),
        });
        const isOther = edits.bans !== undefined || !isDeepStrictEqual(groups.present, groups.edited);
        const bounds =
          isOther && groupNames(groups.present).length > 0
            ? refusedBounds(
                replay(withRefused(recorded, refusedByAnyGroup(groups, calendar)), {}),
                groups,
                calendar,
              )
            : undefined;
        if (bounds !== undefined && bounds.least < bounds.most) hasGroups = true;
        const onGroupRefused = together(ofKey.flatMap((one) => one.onGroupRefused ?? []));
        const ofGroups = replayGroups(groups, calendar, onGroupRefused);
        builder.add(key, withGroups(ofAll, ofGroups, bounds), termsIn(history.of(listed), period));
        for (const watcher of ofKey) watcher.end();
        replayed += recorded.minute.length;
        minutesExamined += recorded.minute.length;
        if (replayed < minutesPerTurn) continue;
        replayed = 0;
        await nextTurn();
      }
      examined += part.length;
      await nextTurn();
    }
    const lastKey = left[examined - 1]?.key;
    return {
      period,
      verdict: builder.finish({ keysListed, differencesListed }, (name) =>
        Object.assign({}, ...watchers.map((watcher) => watcher.ofPlan(name))),
      ),
      activeKeys: wanted.length,
      examinedKeys: examined,
      next: examined < left.length ? lastKey?.id : undefined,
      minutes: minutesOf === undefined ? undefined : minutes,
      leftOut,
      changesReadSinceMs: history.changesReadSinceMs,
      ...(hasGroups && { hasGroups }),
    };
  }

  /**
   * Reads the recorded minutes of keys. Minutes before the period are included if their requests were charged to a
   * window that was open at the start of the period.
   */
  async function readMinutes(
    part: readonly ListedKey[],
    stepsOf: (listed: ListedKey) => readonly EditedStep[],
    { fromMs, toMs }: Period,
  ): Promise<readonly Recorded[] | undefined> {
    const dayStartMs = Math.floor(fromMs / dayMs) * dayMs;
    const wanted = part.map((listed) => ({ listed, steps: stepsOf(listed) }));
    const byStart = Map.groupBy(wanted, ({ steps }) => {
      const limits = steps.flatMap(({ present, edited }) => [...present, ...edited]);
      const neededMs = Math.min(dayStartMs, ...limits.map(({ window }) => calendarStartMs(window, fromMs)));
      return Math.min(dayStartMs, keptPart({ fromMs: neededMs, toMs }).fromMs);
    });
    const found = new Map<string, Recorded>();
    for (const [startMs, group] of byStart) {
      const name = `${startMs} ${toMs}`;
      const missing = group
        .map(({ listed }) => listed.key.id)
        .filter((id) => kept.get(name, id) === undefined);
      const read =
        missing.length === 0 ? [] : await usage?.reader.minutesOf(missing, { fromMs: startMs, toMs });
      if (read === undefined) return undefined;
      const needing = group
        .filter(({ steps }) => windowsBefore(steps, fromMs, startMs).length > 0)
        .map(({ listed }) => listed.key.id);
      const totals = needing.length === 0 ? [] : await usage?.totals(needing);
      if (totals === undefined) return undefined;
      for (const { listed, steps } of group) {
        const { key } = listed;
        const minutes = read[missing.indexOf(key.id)] ?? kept.get(name, key.id) ?? noMinutes;
        // Records of the present minute are not cached, because the figures of this minute still change.
        if (Math.floor(toMs / minuteMs) < Math.floor(nowMs() / minuteMs)) kept.keep(name, key.id, minutes);
        const usedEarlier = usedBefore(totals[needing.indexOf(key.id)], steps, fromMs, startMs);
        const first = steps.findLastIndex(({ fromMinute }) => fromMinute * minuteMs <= startMs);
        found.set(key.id, { listed, steps: steps.slice(Math.max(0, first)), minutes, usedEarlier });
      }
    }
    return part.flatMap(({ key: { id } }) => found.get(id) ?? []);
  }
}

/**
 * Returns the units that were charged to the open windows on days whose minutes are no longer recorded. A day counts if the window had a
 * limit at its end.
 */
function usedBefore(
  totals: ReadonlyMap<number, Tally> | undefined,
  steps: readonly EditedStep[],
  fromMs: number,
  startMs: number,
): UsedEarlier {
  const days = [...(totals ?? [])].filter(([day]) => day * dayMs < startMs);
  return new Map(
    windowsBefore(steps, fromMs, startMs).map(({ window }) => {
      const windowMs = calendarStartMs(window, fromMs);
      const isCounted = (day: number) =>
        day * dayMs >= windowMs &&
        limitsBefore(steps, (day + 1) * dayMs).some((limit) => limit.window === window);
      const used = days.reduce((sum, [day, tally]) => sum + (isCounted(day) ? unitsOf(tally) : 0), 0);
      return [window, { index: windowIndex(calendarWindowsMs[window], fromMs), used }];
    }),
  );
}

/** The windows that began before the first recorded minute, and had a limit in this minute. */
function windowsBefore(steps: readonly EditedStep[], fromMs: number, startMs: number): Limits {
  return limitsBefore(steps, startMs + minuteMs).filter(
    ({ window }) => calendarStartMs(window, fromMs) < startMs,
  );
}

/** The limits of all operations that were in force just before a time. */
function limitsBefore(steps: readonly EditedStep[], atMs: number): Limits {
  return ofAllOperations(steps.findLast(({ fromMinute }) => fromMinute * minuteMs < atMs)?.present ?? []);
}

const differencesListed = 100;

/** The record of a key, and its limits since the first recorded minute. */
interface Recorded {
  readonly listed: ListedKey;
  readonly steps: readonly EditedStep[];
  readonly minutes: KeyMinutes;
  readonly usedEarlier: UsedEarlier;
}

const none = new Uint32Array();
const noMinutes: KeyMinutes = {
  minute: new Float64Array(),
  admitted: none,
  refused: none,
  bySecond: none,
  banned: none,
  undecided: none,
};

function minuteOf(recorded: KeyMinutes, minute: number, admittedThen: number): SimulatedMinute {
  const place = recorded.minute.indexOf(minute);
  return {
    at: isoSecondOf(minute * minuteMs),
    offered: offeredAt(recorded, place),
    admittedNow: recorded.admitted[place] ?? 0,
    admittedThen,
  };
}

/** Caches the recently read records of one period. Records of another period replace the cached records. */
function createKeptMinutes({ simulationMinutesKeptMax: minutesMax, simulationKeptMs: keptMs }: Bounds) {
  let name = '';
  let byKey = new Map<string, KeyMinutes>();
  let minutes = 0;
  let timer: NodeJS.Timeout | undefined;
  const clear = (nextName: string) => {
    name = nextName;
    byKey = new Map();
    minutes = 0;
  };
  return {
    get: (of: string, keyId: string) => (of === name ? byKey.get(keyId) : undefined),
    keep(of: string, keyId: string, recorded: KeyMinutes): void {
      if (of !== name) clear(of);
      clearTimeout(timer);
      timer = setTimeout(clear, keptMs, '').unref();
      // The record of the requests' costs takes three times as much memory as the other figures of a minute.
      const size = recorded.minute.length * (recorded.costs === undefined ? 1 : 4);
      if (byKey.has(keyId) || minutes + size > minutesMax) return;
      byKey.set(keyId, recorded);
      minutes += size;
    },
  };
}

/** Makes one function of several; undefined without a function. */
function together<Args extends unknown[]>(
  all: readonly ((...args: Args) => void)[],
): ((...args: Args) => void) | undefined {
  if (all.length < 2) return all[0];
  return (...args) => {
    for (const one of all) one(...args);
  };
}
