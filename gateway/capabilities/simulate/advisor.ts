import type { Key, PlanAdvice, Proposals } from '../../shared/model.ts';
import type { Period } from '../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { KeyMinutes } from '../../usage/read/key-minutes.ts';
import type { Edits, Present } from './replay/edits.ts';
import type { OnGroupRefused, ReplayedGroups } from './replay/replay-groups.ts';
import type { ReplaySinks } from './replay/replayed-key.ts';
import type { PlanTotals } from './replay/verdict.ts';
import type { Calendar } from './replay/window-rooms.ts';

/** What another capability adds to the response of a simulation. */
export interface Advisor {
  /** Observes the replay of one part of a simulation. */
  watch(part: WatchedPart): Watcher;
  /** The members of the response. @param plans the figures of the simulated plans */
  advise(simulated: Simulated & { readonly plans: readonly PlanTotals[] }): Proposals;
}

interface Simulated {
  readonly edits: Edits;
  readonly present: Present;
  readonly nowMs: number;
  readonly bounds: Bounds;
}

interface WatchedPart extends Omit<Simulated, 'nowMs'> {
  readonly period: Period;
  readonly calendar: Calendar;
}

interface Watcher {
  /** Observes the replay of a key; undefined if the refusals of the key do not matter. */
  ofKey(key: Key, recorded: KeyMinutes, groups: ReplayedGroups): KeyWatcher | undefined;
  /** The members of the figures of a plan. */
  ofPlan(name: string): PlanAdvice;
}

export interface KeyWatcher extends Pick<ReplaySinks, 'onRefused'> {
  readonly onGroupRefused?: OnGroupRefused | undefined;
  /** Called after the replay of the key. */
  end(): void;
}

/** Loads the advisors with the first simulation. */
export type LoadAdvisors = readonly (() => Promise<Advisor>)[];
