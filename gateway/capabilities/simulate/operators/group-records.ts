import type { KeySources } from '../../../admin/keys/key-sources.ts';
import { calendarStartMs, calendarWindowsMs, windowIndex } from '../../../shared/calendar-windows.ts';
import { groupNames, limitsOfGroup, operationsOf } from '../../../shared/limits.ts';
import type { Key, Limits } from '../../../shared/model.ts';
import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import { dayMs, hourMs, minuteMs } from '../../../shared/words/figures.js';
import type { Edits } from '../replay/edits.ts';
import { type ReplayedGroups, unreplayableGroups } from '../replay/replay-groups.ts';
import type { EditedStep } from '../replay/replayed-key.ts';
import type { UsedEarlier } from '../replay/window-rooms.ts';

/** The requests of an edited group that are recorded only by the hour. */
export interface LeftOut {
  readonly of: 'plan' | 'key';
  readonly name: string;
  readonly group: string;
  readonly requests: number;
}

/**
 * Reads the recorded requests of the groups of operations of a key, for a simulation.
 *
 * @param keptPart returns the part of a period whose minutes are recorded
 */
export function createGroupRecords(usage: KeySources['usage'], keptPart: (period: Period) => Period) {
  return { read, leftOutOf };

  /** Reads the requests of the groups of a key. The result is undefined when the store does not reply. */
  async function read(
    key: Key,
    steps: readonly EditedStep[],
    edited: Limits,
    { fromMs, toMs }: Period,
  ): Promise<ReplayedGroups | undefined> {
    const names = groupNames(key.limits);
    const fromMinute = Math.floor(fromMs / minuteMs);
    if (names.length === 0)
      return { minutes: [], fromMinute, usedEarlier: new Map(), steps, present: key.limits, edited };
    const starts = [...key.limits, ...edited].map(({ window }) => calendarStartMs(window, fromMs));
    const startMs = Math.min(Math.floor(fromMs / dayMs) * dayMs, ...starts);
    const keptMs = keptPart({ fromMs: startMs, toMs }).fromMs;
    const minutes = await usage?.reader.minutes(key.id, { fromMs: keptMs, toMs }, names);
    const usedEarlier = startMs < keptMs ? await usedByGroups(key, names, fromMs, keptMs) : new Map();
    if (minutes === undefined || usedEarlier === undefined) return undefined;
    return { minutes, fromMinute, usedEarlier, steps, present: key.limits, edited };
  }

  /**
   * Counts the requests of edited groups that the record has only by the hour. These are all requests if the group is new or has other
   * operations. Otherwise, they are the requests of hours in which no request was decided in the group. The result is undefined when the
   * store does not reply.
   */
  async function leftOutOf(
    { id, plan, ownGroups = [] }: Key,
    edits: Edits,
    { minutes, present, edited }: ReplayedGroups,
    period: Period,
  ): Promise<readonly LeftOut[] | undefined> {
    const ofPlan = Object.keys(edits.plans.get(plan)?.groups ?? {}).filter(
      (name) => !ownGroups.includes(name),
    );
    const ofKey = Object.keys(edits.keys.get(id)?.groups ?? {});
    const owners = [
      ...ofPlan.map((group) => ({ of: 'plan' as const, name: plan, group })),
      ...ofKey.map((group) => ({ of: 'key' as const, name: id, group })),
    ].filter(({ group }) => operationsOf(edited, group) !== undefined);
    if (owners.length === 0) return [];
    const unreplayable = unreplayableGroups(present, edited);
    const operations = owners.flatMap(({ group }) => operationsOf(edited, group) ?? []);
    const hours = await usage?.reader.operationsOf(id, period, [...new Set(operations)]);
    return (
      hours &&
      owners.map((owner) => {
        const { group } = owner;
        const decided = unreplayable.includes(group)
          ? []
          : minutes.filter(({ tally }) => (tally.groups?.get(group)?.offered ?? 0) > 0);
        const hoursDecided = new Set(decided.map(({ atMs }) => Math.floor(atMs / hourMs)));
        const ofGroup = hours.filter(
          ({ operationId, atMs }) =>
            operationsOf(edited, group)?.includes(operationId) &&
            !hoursDecided.has(Math.floor(atMs / hourMs)),
        );
        return { ...owner, requests: ofGroup.reduce((sum, { requests }) => sum + requests, 0) };
      })
    );
  }

  /** Returns the units of each group on days whose minutes are no longer recorded. */
  async function usedByGroups(
    { id, limits }: Key,
    names: readonly string[],
    fromMs: number,
    keptMs: number,
  ): Promise<ReadonlyMap<string, UsedEarlier> | undefined> {
    const [totals] = (await usage?.totals([id])) ?? [];
    return (
      totals &&
      new Map(
        names.map((name) => {
          const windows = limitsOfGroup(limits, name).map(({ window }) => window);
          const used = windows.map((window) => {
            const startMs = calendarStartMs(window, fromMs);
            const days = [...totals].filter(([day]) => day * dayMs >= startMs && day * dayMs < keptMs);
            const units = days.reduce((sum, [, tally]) => sum + (tally.groups?.get(name)?.units ?? 0), 0);
            return [window, { index: windowIndex(calendarWindowsMs[window], fromMs), used: units }] as const;
          });
          return [name, new Map(used)];
        }),
      )
    );
  }
}
