import type { BanPolicy, Limits } from '../../../shared/model.ts';
import { type KeyMinutes, unitsAt } from '../../../usage/read/key-minutes.ts';
import { PossibleBans, type RecordedDecisions } from './possible-bans.ts';
import type { Calendar, LimitStep, UsedEarlier } from './window-rooms.ts';

/** The limits of a key from a minute on, until the next step. */
export interface EditedStep {
  readonly fromMinute: number;
  /** The limits that were in force. */
  readonly present: Limits;
  readonly edited: Limits;
}

/** The record of one key, and the limits and bans for the replay. */
export interface ReplayedKey {
  /**
   * The recorded minutes, from the beginning of a day. Minutes before `fromMinute` are not replayed, but their units
   * count against the windows.
   */
  readonly minutes: KeyMinutes;
  /** The first minute of the replay, in which the edit takes effect. */
  readonly fromMinute: number;
  /** The limits over time, at least one step. The first step also holds for all minutes before it. */
  readonly steps: readonly EditedStep[];
  readonly bans: { readonly present: BanPolicy; readonly edited: BanPolicy };
  /** The units that were charged to the windows before the first minute in `minutes`. */
  readonly usedEarlier?: UsedEarlier | undefined;
}

/** Returns the limits that were in force over time. */
export function presentSteps({ steps }: Pick<ReplayedKey, 'steps'>): readonly LimitStep[] {
  return steps.map(({ fromMinute, present }) => ({ fromMinute, limits: present }));
}

/** Returns the limits of a replay of the edit: those that were in force before the edit, and the edited limits from then on. */
export function editedSteps({
  steps,
  fromMinute,
}: Pick<ReplayedKey, 'steps' | 'fromMinute'>): readonly LimitStep[] {
  const isEarlier = (step: EditedStep) => step.fromMinute < fromMinute;
  const first = steps.findLast(isEarlier) ?? steps[0];
  return [
    ...presentSteps({ steps: steps.filter(isEarlier) }),
    ...(first === undefined ? [] : [{ fromMinute, limits: first.edited }]),
    ...steps.filter((step) => !isEarlier(step)).map((step) => ({ ...step, limits: step.edited })),
  ];
}

/** Returns the limits that were in force in a minute. */
function presentLimits({ steps }: Pick<ReplayedKey, 'steps'>, minute: number): Limits {
  const step = steps.findLast(({ fromMinute }) => fromMinute <= minute) ?? steps[0];
  return step?.present ?? [];
}

/** The functions that receive the minutes of a replay. Each function gets the minutes in ascending order. */
export interface ReplaySinks {
  /** Receives each minute in which the replay under the limits in force differs from the record. */
  readonly onDifference?:
    | ((minute: number, recordedRefusals: number, replayedRefusals: number) => void)
    | undefined;
  /** Receives each minute of the period, for a chart. */
  readonly onMinute?: ((minute: number, admittedThen: number) => void) | undefined;
  /** Receives the number of requests that would have been refused. Minutes without refusals are left out, which is faster. */
  readonly onRefused?: ((minute: number, refusedThen: number) => void) | undefined;
}

export interface Replayed {
  readonly offered: number;
  readonly mostAdmitted: number;
  readonly leastAdmitted: number;
  readonly firstRefusedMinute: number;
}

/** Returns the requests in the minute at a position of the record. */
export function minuteAt(minutes: KeyMinutes, place: number) {
  const admitted = minutes.admitted[place] ?? 0;
  const bySecond = minutes.bySecond[place] ?? 0;
  const banned = minutes.banned[place] ?? 0;
  const undecided = minutes.undecided[place] ?? 0;
  /** The number of requests that a window refused. */
  const recorded = (minutes.refused[place] ?? 0) + bySecond;
  const offered = admitted + recorded + banned + undecided;
  return { minute: minutes.minute[place] ?? 0, offered, admitted, recorded, bySecond, banned, undecided };
}

/** Returns the number of the requests of a minute that no ban of an earlier minute can hit. */
export function sparedAt(bans: PossibleBans, minutes: KeyMinutes, place: number): number {
  return bans.covers(minutes.minute[place] ?? 0) ? bans.spared(decisionsAt(minutes, place)) : Infinity;
}

function decisionsAt(minutes: KeyMinutes, place: number): RecordedDecisions {
  const { minute, admitted, recorded, banned } = minuteAt(minutes, place);
  return { minute, decided: admitted + recorded, banned };
}

/** Returns the costs of the requests in the minute at a position of the record. */
export function costsAt(minutes: KeyMinutes, place: number) {
  const { costs } = minutes;
  const free = (costs?.admitted.free[place] ?? 0) + (costs?.banned.free[place] ?? 0);
  const units = {
    admitted: unitsAt(minutes, 'admitted', place),
    refused: unitsAt(minutes, 'refused', place),
    bySecond: unitsAt(minutes, 'bySecond', place),
    banned: unitsAt(minutes, 'banned', place),
  };
  return { free, freeAdmitted: costs?.admitted.free[place] ?? 0, units };
}

/** The limit per second; Infinity without such a limit. */
export interface Second {
  readonly max: number;
  /** The limit per second, multiplied by the number of seconds in a minute. */
  readonly inMinute: number;
}

export function secondOf(limits: Limits, { minuteMs, windowsMs }: Calendar): Second {
  const max = limits.find(({ window }) => window === 'second')?.max ?? Infinity;
  return { max, inMinute: (max * minuteMs) / windowsMs.second };
}

/** The limits per second in force (`now`) and after the edit. */
export function editedSeconds(key: ReplayedKey, edited: Limits, minute: number, calendar: Calendar) {
  const [secondNow, second] = [secondOf(presentLimits(key, minute), calendar), secondOf(edited, calendar)];
  const [keepsAdmitted, keepsRefused] = [second.max >= secondNow.max, second.max <= secondNow.max];
  return { secondNow, second, keepsAdmitted, keepsRefused };
}

/**
 * Returns the recorded refusals by the limit per second. The result is at most the number of requests that this limit
 * can have refused in the minute.
 */
export function refusedBySecond(decided: number, recorded: number, { max }: Second): number {
  return Math.min(recorded, Math.max(0, decided - max));
}

/** Computes the possible bans at the beginning of the period, under the edited limits and bans. */
export function possibleBans(
  { minutes, fromMinute, bans: { edited } }: ReplayedKey,
  { minuteMs }: Calendar,
): PossibleBans {
  const bans = new PossibleBans(edited, minuteMs);
  for (let place = 0; (minutes.minute[place] ?? Infinity) < fromMinute; place++) {
    bans.past(decisionsAt(minutes, place), minuteAt(minutes, place).recorded);
  }
  return bans;
}

/**
 * Returns the mean of both bounds, rounded down. The mean equals the number of offered requests only if both bounds
 * equal the number of offered requests.
 */
export function middle(mostAdmitted: number, leastAdmitted: number): number {
  return Math.floor((mostAdmitted + leastAdmitted) / 2);
}
