import { groupNames } from '../../shared/limits.ts';
import type { BanPolicy, Limits, PlanWindow } from '../../shared/model.ts';
import { type KeyMinutes, KeyMinutesBuilder } from '../read/key-minutes.ts';
import type { UsageMinute } from '../read/usage-reader.ts';
import { outcomes } from '../tally.ts';
import { type KeyVerdict, replayKey } from './replay-key.ts';
import type { ReplaySinks } from './replayed-key.ts';
import type { Calendar, UsedEarlier } from './window-rooms.ts';

/**
 * The groups that the record can replay by the minute: those that have the same operations before and after the edit. A group that the
 * edit removes is replayed, too.
 */
export function replayableGroups(present: Limits, edited: Limits): readonly string[] {
  return groupNames(present).filter((name) => {
    const after = operationsOf(edited, name);
    return after === undefined || hasSameOperations(operationsOf(present, name), after);
  });
}

/** The groups of the edited limits whose requests are not on record by the minute, because the group is new or has other operations. */
export function unreplayableGroups(present: Limits, edited: Limits): readonly string[] {
  return groupNames(edited).filter(
    (name) => !hasSameOperations(operationsOf(present, name), operationsOf(edited, name)),
  );
}

function operationsOf(limits: Limits, name: string): readonly string[] | undefined {
  return limits.find(({ group }) => group === name)?.operations;
}

function hasSameOperations(one: readonly string[] = [], other: readonly string[] = []): boolean {
  return [...one].sort().join() === [...other].sort().join();
}

/** The recorded minutes of a key with groups, and the limits for the replay. */
export interface ReplayedGroups {
  /** The recorded minutes with the requests of the groups, from the beginning of a day. */
  readonly minutes: readonly UsageMinute[];
  readonly fromMinute: number;
  /** The units that were charged to the windows of each group before the first minute in `minutes`. */
  readonly usedEarlier: ReadonlyMap<string, UsedEarlier>;
  readonly present: Limits;
  readonly edited: Limits;
}

/**
 * Replays each group on its own: its limits decide the requests that the other limits let pass. A request that a limit of all operations or
 * a ban refused stays refused, and is no part of a group's replay. Bans are not replayed, because they count the refusals of all limits.
 */
export function replayGroups(
  { minutes, fromMinute, usedEarlier, present, edited }: ReplayedGroups,
  calendar: Calendar,
  sinks: Pick<ReplaySinks, 'onRefused'>,
): readonly KeyVerdict[] {
  return replayableGroups(present, edited).map((name) => {
    const ofGroup = (limits: Limits) =>
      limits.filter(({ group }) => group === name).map(({ window, max }) => ({ window, max }));
    const replayed = {
      minutes: minutesOfGroup(minutes, name, calendar),
      fromMinute,
      usedEarlier: usedEarlier.get(name),
      present: { limits: ofGroup(present), bans: noBans },
      edited: { limits: ofGroup(edited), bans: noBans },
    };
    return replayKey(replayed, calendar, sinks);
  });
}

const noBans: BanPolicy = { after: Number.MAX_SAFE_INTEGER, withinMs: 1, forMs: 1, maxMs: 1 };

/** The admitted requests of a group, and those that its windows refused. The record has no cost of a refused request, which counts as 1. */
function minutesOfGroup(minutes: readonly UsageMinute[], name: string, { minuteMs }: Calendar): KeyMinutes {
  const builder = new KeyMinutesBuilder();
  for (const { atMs, tally } of minutes) {
    const group = tally.groups?.get(name);
    if (group === undefined) continue;
    const minute = Math.floor(atMs / minuteMs);
    const { admitted, units, refused } = group;
    if (admitted > 0) {
      const [extra, free] = [Math.max(0, units - admitted), Math.max(0, admitted - units)];
      builder.add(minute, outcomes.indexOf('admitted'), admitted, extra, free);
    }
    for (const [window, requests] of Object.entries(refused) as [PlanWindow, number][])
      builder.add(minute, outcomes.indexOf(window), requests);
  }
  return builder.finish();
}

/** Adds the refusals of groups to the verdict about the limits of all operations, which leaves these refusals out. */
export function withGroups(ofAll: KeyVerdict, groups: readonly KeyVerdict[]): KeyVerdict {
  return groups.reduce(
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
}
