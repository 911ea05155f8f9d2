import type * as z from 'zod';
import type { Key } from '../../shared/model.ts';
import type { Period } from '../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { KeyMinutes } from '../../usage/read/key-minutes.ts';
import type { Edits, Present } from '../../usage/simulate/edits.ts';
import type { OnGroupRefused, ReplayedGroups } from '../../usage/simulate/replay-groups.ts';
import type { ReplaySinks } from '../../usage/simulate/replayed-key.ts';
import type { PlanAdvice, PlanTotals } from '../../usage/simulate/verdict.ts';
import type { Calendar } from '../../usage/simulate/window-rooms.ts';
import type { adviceShapes } from '../lists/schemas.ts';

/** What a capability adds to the response of a simulation. */
export interface Advisor {
  /** Observes the replay of one part of a simulation. */
  watch(part: WatchedPart): Watcher;
  /** The members of the response. @param plans the figures of the simulated plans */
  advise(
    simulated: Simulated & { readonly plans: readonly PlanTotals[] },
  ): z.output<z.ZodObject<typeof adviceShapes>>;
}

interface Simulated {
  readonly edits: Edits;
  readonly present: Present;
  readonly nowMs: number;
  readonly bounds: Bounds;
}

export interface WatchedPart extends Omit<Simulated, 'nowMs'> {
  readonly period: Period;
  readonly calendar: Calendar;
}

export interface Watcher {
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
