import { groupNames, haveSameOperations, limitsOfGroup, operationsOf } from '../../../shared/limits.ts';
import type { BanPolicy, Limits, PlanWindow } from '../../../shared/model.ts';
import { type KeyMinutes, KeyMinutesBuilder } from '../../../usage/read/key-minutes.ts';
import type { UsageMinute } from '../../../usage/read/usage-reader.ts';
import { outcomes } from '../../../usage/tally.ts';
import { type KeyVerdict, replayKey } from './replay-key.ts';
import type { EditedStep, ReplaySinks } from './replayed-key.ts';
import type { Calendar, UsedEarlier } from './window-rooms.ts';

/** The groups of the edited limits whose requests are not on record by the minute, because the group is new or has other operations. */
export function unreplayableGroups(present: Limits, edited: Limits): readonly string[] {
  return groupNames(edited).filter(
    (name) => !haveSameOperations(operationsOf(present, name) ?? [], operationsOf(edited, name) ?? []),
  );
}

/** The recorded minutes of a key with groups, and the limits for the replay. */
export interface ReplayedGroups {
  /** The recorded minutes with the requests of the groups, from the beginning of a day. */
  readonly minutes: readonly UsageMinute[];
  readonly fromMinute: number;
  /** The units that were charged to the windows of each group before the first minute in `minutes`. */
  readonly usedEarlier: ReadonlyMap<string, UsedEarlier>;
  /** The limits over time, with the limits of groups. */
  readonly steps: readonly EditedStep[];
  /** The limits at the end of the period. */
  readonly present: Limits;
  readonly edited: Limits;
}

/** Gets the number of requests that a group would have refused in a minute. */
export type OnGroupRefused = (name: string, minute: number, refusedThen: number) => void;

/**
 * Replays each group on its own: its limits decide the requests that the other limits let pass. A request that a limit of all operations or
 * a ban refused stays refused, and is no part of a group's replay. Bans are not replayed, because they count the refusals of all limits. A
 * group that the record cannot replay keeps the limits that were in force.
 */
export function replayGroups(
  groups: ReplayedGroups,
  calendar: Calendar,
  onRefused?: OnGroupRefused,
): readonly KeyVerdict[] {
  return groupNames(groups.present).map((name) => {
    const minutes = minutesOfGroup(groups.minutes, name, calendar, () => 0);
    return replayGroup(name, { ...groups, minutes }, calendar, {
      onRefused: onRefused && ((minute, refused) => onRefused(name, minute, refused)),
    });
  });
}

function replayGroup(
  name: string,
  {
    minutes,
    fromMinute,
    usedEarlier,
    steps,
    present,
    edited,
  }: Omit<ReplayedGroups, 'minutes'> & ReplayedMinutes,
  calendar: Calendar,
  sinks: ReplaySinks = {},
): KeyVerdict {
  const ofGroup = (limits: Limits) => limitsOfGroup(limits, name).map(({ window, max }) => ({ window, max }));
  const isReplayable = !unreplayableGroups(present, edited).includes(name);
  const replayed = {
    minutes,
    fromMinute,
    usedEarlier: usedEarlier.get(name),
    steps: steps.map((step) => ({
      fromMinute: step.fromMinute,
      present: ofGroup(step.present),
      edited: ofGroup(isReplayable ? step.edited : step.present),
    })),
    bans: { present: noBans, edited: noBans },
  };
  return replayKey(replayed, calendar, sinks);
}

interface ReplayedMinutes {
  readonly minutes: KeyMinutes;
}

/** The smallest and the largest possible number of refused requests. */
export interface RefusedBounds {
  readonly least: number;
  readonly most: number;
}

/**
 * Computes bounds for the refusals of all limits together. A request is charged in all windows or in none, so the refusals of one limit leave
 * more room in the other limits. Each bucket is therefore replayed with all requests that it counts, also those that another limit refused:
 *
 * - A bucket admits at most as many requests as it admits alone. The lower bound is therefore the largest number of refusals of a bucket alone.
 *   The refusals of groups add up if no operation is in two groups.
 *
 * - Without the requests that other limits refuse, a bucket refuses no more requests than with them. All buckets together therefore refuse at
 *   most the sum of their refusals.
 *
 * The bounds leave out bans that begin with refusals of groups.
 *
 * @param ofAll the replay of the limits of all operations, with the requests that groups refused (`refusedByAnyGroup`)
 */
export function refusedBounds(
  { offered, refusedThenMin, refusedThenMax }: KeyVerdict,
  groups: ReplayedGroups,
  calendar: Calendar,
): RefusedBounds {
  const names = groupNames(groups.present);
  const replayAll = (othersOf: OthersOf) =>
    names.map((name) =>
      replayGroup(
        name,
        { ...groups, minutes: minutesOfGroup(groups.minutes, name, calendar, othersOf) },
        calendar,
      ),
    );
  // A request that the concurrency limit refused was not offered. The record does not show how many of these requests the group has.
  const least = replayAll((others, concurrent) => Math.max(0, others - concurrent)).map(
    (verdict) => verdict.refusedThenMin,
  );
  const most = replayAll((others) => others).map((verdict) => verdict.refusedThenMax);
  const operations = names.flatMap((name) => operationsOf(groups.present, name) ?? []);
  const areDisjoint = new Set(operations).size === operations.length;
  return {
    least: Math.max(refusedThenMin, areDisjoint ? sumOf(least) : Math.max(0, ...least)),
    most: Math.min(offered, refusedThenMax + sumOf(most)),
  };
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

/** Returns the requests of some groups, as if all were admitted. A request of several groups counts once for each. */
export function offeredInGroups(
  { minutes }: Pick<ReplayedGroups, 'minutes'>,
  names: readonly string[],
  { minuteMs }: Calendar,
): KeyMinutes {
  const builder = new KeyMinutesBuilder();
  for (const { atMs, tally } of minutes) {
    const offered = sumOf(names.map((name) => tally.groups?.get(name)?.offered ?? 0));
    if (offered > 0) builder.add(Math.floor(atMs / minuteMs), outcomes.indexOf('admitted'), offered);
  }
  return builder.finish();
}

/** Returns the requests that the groups refused, by minute. */
export function refusedByAnyGroup(
  { minutes, present }: Pick<ReplayedGroups, 'minutes' | 'present'>,
  { minuteMs }: Calendar,
): ReadonlyMap<number, number> {
  const names = groupNames(present);
  return new Map(
    minutes.flatMap(({ atMs, tally }) => {
      const refused = names.flatMap((name) => Object.values(tally.groups?.get(name)?.refused ?? {}));
      return refused.length === 0 ? [] : [[Math.floor(atMs / minuteMs), sumOf(refused)]];
    }),
  );
}

const noBans: BanPolicy = { after: Number.MAX_SAFE_INTEGER, withinMs: 1, forMs: 1, maxMs: 1 };

/**
 * Returns how many of the requests of a group take part that another limit or a ban refused.
 *
 * @param concurrent the requests of all operations that the concurrency limit refused in the minute
 */
type OthersOf = (others: number, concurrent: number) => number;

/** The admitted requests of a group, and those that its windows refused. The record has no cost of a refused request, which counts as 1. */
function minutesOfGroup(
  minutes: readonly UsageMinute[],
  name: string,
  { minuteMs }: Calendar,
  othersOf: OthersOf,
): KeyMinutes {
  const builder = new KeyMinutesBuilder();
  for (const { atMs, tally } of minutes) {
    const group = tally.groups?.get(name);
    if (group === undefined) continue;
    const minute = Math.floor(atMs / minuteMs);
    const { offered, admitted, units, refused } = group;
    if (admitted > 0) {
      const [extra, free] = [Math.max(0, units - admitted), Math.max(0, admitted - units)];
      builder.add(minute, outcomes.indexOf('admitted'), admitted, extra, free);
    }
    for (const [window, requests] of Object.entries(refused) as [PlanWindow, number][])
      builder.add(minute, outcomes.indexOf(window), requests);
    const others = othersOf(offered - admitted - sumOf(Object.values(refused)), tally.concurrent);
    if (others > 0) builder.add(minute, outcomes.indexOf('minute'), others);
  }
  return builder.finish();
}

/**
 * Adds the refusals of groups to the verdict about the limits of all operations, which leaves these refusals out.
 *
 * @param bounds undefined if the edit does not concern the key, so that the recorded refusals are the result
 */
export function withGroups(
  ofAll: KeyVerdict,
  groups: readonly KeyVerdict[],
  bounds: RefusedBounds | undefined,
): KeyVerdict {
  const sum = groups.reduce(
    (sum, group) => ({
      offered: sum.offered + group.refusedNow,
      refusedNow: sum.refusedNow + group.refusedNow,
      refusedThen: sum.refusedThen + group.refusedThen,
      refusedThenMin: sum.refusedThenMin + group.refusedThenMin,
      refusedThenMax: sum.refusedThenMax + group.refusedThenMax,
      firstRefusedMinute: Math.min(sum.firstRefusedMinute, group.firstRefusedMinute),
      censoredMinutes: Math.max(sum.censoredMinutes, group.censoredMinutes),
      recordedRefusals: sum.recordedRefusals + group.recordedRefusals,
      replayedRefusals: sum.replayedRefusals + group.replayedRefusals,
    }),
    ofAll,
  );
  if (bounds === undefined) return sum;
  const { least, most } = bounds;
  return {
    ...sum,
    refusedThen: Math.ceil((least + most) / 2),
    refusedThenMin: least,
    refusedThenMax: most,
  };
}
