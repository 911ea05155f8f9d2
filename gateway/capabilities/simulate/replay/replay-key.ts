import { isDeepStrictEqual } from 'node:util';
import { chargedUnits, type KeyMinutes } from '../../../usage/read/key-minutes.ts';
import { possibleRefusals, replayEditedUnits } from './replay-units.ts';
import {
  editedSeconds,
  editedSteps,
  middle,
  minuteAt,
  possibleBans,
  presentSteps,
  type Replayed,
  type ReplayedKey,
  type ReplaySinks,
  refusedBySecond,
  secondOf,
  sparedAt,
} from './replayed-key.ts';
import { type Calendar, fitting, WindowRooms } from './window-rooms.ts';

/**
 * The numbers of a key's requests in the period. Refused requests are all offered requests that were not admitted, including bans and 503.
 */
export interface KeyVerdict {
  readonly offered: number;
  readonly refusedNow: number;
  /** The mean of the two bounds. The numbers that `onMinute` receives add up to `offered` minus this mean. */
  readonly refusedThen: number;
  /** Hold for every order of requests within a minute. The order matters for bans, limits per second and mixed costs. */
  readonly refusedThenMin: number;
  readonly refusedThenMax: number;
  /** The number of the first minute with a refusal under the edited limits and bans; Infinity without refusals. */
  readonly firstRefusedMinute: number;
  /** Minutes with refusals or bans. Clients send fewer requests in such a minute than without limits. How many fewer is unknown. */
  readonly censoredMinutes: number;
  /** The numbers of requests that windows refused, in the record and in the replay under the limits in force. */
  readonly recordedRefusals: number;
  readonly replayedRefusals: number;
}

/**
 * Replays the record of one key. The first replay uses the limits that were in force and must agree with the record. The second replay uses
 * the edited limits.
 *
 * If the edit changes nothing and the first replay agrees with the record, the record itself is the result.
 */
export function replayKey(key: ReplayedKey, calendar: Calendar, sinks: ReplaySinks = {}): KeyVerdict {
  const { differs, ...present } = replayPresent(key, calendar, sinks);
  const isSame =
    isDeepStrictEqual(key.bans.present, key.bans.edited) &&
    key.steps.every((step) => isDeepStrictEqual(step.present, step.edited));
  const isRecord = !differs && isSame;
  const replay = key.minutes.costs === undefined ? replayEdited : replayEditedUnits;
  const then = isRecord ? asRecorded(key, sinks) : replay(key, calendar, sinks);
  const { offered, mostAdmitted, leastAdmitted, firstRefusedMinute } = then;
  return {
    offered,
    refusedNow: present.refusedNow,
    refusedThen: offered - middle(mostAdmitted, leastAdmitted),
    refusedThenMin: offered - mostAdmitted,
    refusedThenMax: offered - leastAdmitted,
    firstRefusedMinute,
    censoredMinutes: present.censoredMinutes,
    recordedRefusals: present.recordedRefusals,
    replayedRefusals: present.replayedRefusals,
  };
}

/**
 * Replays the limits that were in force to check the replay against the record. Counts of whole minutes cannot reproduce bans, refusals by
 * the limit per second, and requests without a decision (503). For such refusals, the check uses the recorded number, unless this number
 * is impossible.
 */
function replayPresent(key: ReplayedKey, calendar: Calendar, { onDifference }: ReplaySinks) {
  const { minutes, fromMinute, usedEarlier } = key;
  const rooms = new WindowRooms(presentSteps(key), calendar, usedEarlier);
  const units = chargedUnits(minutes);
  const run = startRun(rooms, minutes, units, fromMinute);
  const found = {
    refusedNow: 0,
    recordedRefusals: 0,
    replayedRefusals: 0,
    censoredMinutes: 0,
    differs: false,
  };
  while (run.place < minutes.minute.length) {
    rooms.open(minutes.minute[run.place] ?? 0, run.used, run.used);
    const room = rooms.mostRoom;
    const second = secondOf(rooms.limits, calendar);
    const wholeMost = Math.min(rooms.minuteMax, second.inMinute);
    run.used = 0;
    while (admitWhole(minutes, units, run, rooms.nextEnd, wholeMost, room)) {
      const { minute, offered, admitted, recorded, banned } = minuteAt(minutes, run.place);
      const left = Math.min(rooms.minuteMax, room - run.used);
      const refusals = possibleRefusals({ minutes, place: run.place }, left, second);
      if (refusals !== recorded) {
        found.differs = true;
        onDifference?.(minute, recorded, refusals);
      }
      found.refusedNow += offered - admitted;
      found.recordedRefusals += recorded;
      found.replayedRefusals += refusals;
      if (recorded + banned > 0) found.censoredMinutes += 1;
      // The replay adds the units of the requests that the gateway admitted, so one wrong minute does not affect later minutes.
      run.used += units[run.place] ?? 0;
      run.place += 1;
    }
  }
  return found;
}

/** Returns the record in the form of a replay's result. */
function asRecorded({ minutes, fromMinute }: ReplayedKey, { onMinute, onRefused }: ReplaySinks): Replayed {
  let [offered, admitted, firstRefusedMinute] = [0, 0, Infinity];
  for (const place of minutes.minute.keys()) {
    const here = minuteAt(minutes, place);
    if (here.minute < fromMinute) continue;
    if (here.offered > here.admitted) {
      firstRefusedMinute = Math.min(firstRefusedMinute, here.minute);
      onRefused?.(here.minute, here.offered - here.admitted);
    }
    offered += here.offered;
    admitted += here.admitted;
    onMinute?.(here.minute, here.admitted);
  }
  return { offered, mostAdmitted: admitted, leastAdmitted: admitted, firstRefusedMinute };
}

/**
 * Computes bounds for the number of admitted requests under the edited limits and bans. The bounds hold for every order of the requests
 * within a minute:
 *
 * - The upper bound assumes that no ban begins, and that requests are spread over the seconds of a minute. Each shorter window lies within
 *   a single longer window. If the replay admits every request for which there is room, the number of admitted requests is therefore the
 *   largest possible at every moment. If the limit per second is not raised, every request that this limit refused is refused again. For
 *   each such request, the window of its second or a longer window is full.
 *
 * - The lower bound assumes that a ban of the longest possible duration follows every minute in which a ban can begin. The lower bound also
 *   assumes that all requests of a minute arrive in one second. If the limit per second is not lowered, it still admits as many requests as
 *   it admitted in the record.
 *
 * Bans that were recorded after the edit are not used, because under other limits a ban begins at another time or never. The estimate of each
 * minute is the mean of both bounds, so the error is at most half of the distance between the bounds.
 */
function replayEdited(key: ReplayedKey, calendar: Calendar, { onMinute, onRefused }: ReplaySinks): Replayed {
  const { minutes, fromMinute, usedEarlier } = key;
  const rooms = new WindowRooms(editedSteps(key), calendar, usedEarlier);
  const bans = possibleBans(key, calendar);
  /** The replay that computes the upper bound of the admitted requests. */
  const run = startRun(rooms, minutes, minutes.admitted, fromMinute);
  let leastUsed = run.used;
  let [offered, mostAdmitted, leastAdmitted, firstRefusedMinute] = [0, 0, 0, Infinity];
  while (run.place < minutes.minute.length) {
    const first = minutes.minute[run.place] ?? 0;
    rooms.open(first, run.used, leastUsed);
    const { minuteMax, mostRoom, leastRoom } = rooms;
    const { secondNow, second, keepsAdmitted, keepsRefused } = editedSeconds(
      key,
      rooms.limits,
      first,
      calendar,
    );
    const wholeMost = Math.min(minuteMax, keepsAdmitted ? second.inMinute : second.max);
    [run.used, leastUsed] = [0, 0];
    for (;;) {
      const usedBefore = run.used;
      const spared = sparedAt(bans, minutes, run.place);
      const mayBeWhole = spared === Infinity && onMinute === undefined;
      const room = Math.min(mostRoom, leastRoom - leastUsed + usedBefore);
      const isLeft = admitWhole(
        minutes,
        minutes.admitted,
        run,
        rooms.nextEnd,
        mayBeWhole ? wholeMost : -1,
        room,
      );
      const whole = run.used - usedBefore;
      offered += whole;
      mostAdmitted += whole;
      leastAdmitted += whole;
      leastUsed += whole;
      if (!isLeft) break;
      const here = minuteAt(minutes, run.place);
      const decided = here.offered - here.undecided;
      const stayRefused = keepsRefused ? refusedBySecond(decided, here.bySecond, secondNow) : 0;
      const inOneSecond = Math.min(decided, second.max);
      const passing = keepsAdmitted ? Math.max(inOneSecond, here.admitted) : inOneSecond;
      const most = fitting(Math.min(decided - stayRefused, second.inMinute), minuteMax, mostRoom - run.used);
      const refused = decided - fitting(passing, minuteMax, mostRoom - run.used);
      const begins = refused > 0 && bans.refuse(here.minute, refused);
      const leastPassing = Math.min(spared, begins ? inOneSecond : passing);
      const least = fitting(leastPassing, minuteMax, leastRoom - leastUsed);
      const admittedBefore = middle(mostAdmitted, leastAdmitted);
      run.place += 1;
      run.used += most;
      leastUsed += least;
      offered += here.offered;
      mostAdmitted += most;
      leastAdmitted += least;
      const admitted = middle(mostAdmitted, leastAdmitted) - admittedBefore;
      if (admitted < here.offered) {
        firstRefusedMinute = Math.min(firstRefusedMinute, here.minute);
        onRefused?.(here.minute, here.offered - admitted);
      }
      onMinute?.(here.minute, admitted);
    }
  }
  return { offered, mostAdmitted, leastAdmitted, firstRefusedMinute };
}

/** The position of a replay in the record, and the units that were charged since the last call of `WindowRooms.open`. */
interface Run {
  place: number;
  used: number;
}

/** Adds the units from before the period to the windows. */
function startRun(
  rooms: WindowRooms,
  { minute }: KeyMinutes,
  units: ArrayLike<number>,
  fromMinute: number,
): Run {
  const run = { place: 0, used: 0 };
  for (;;) {
    const first = minute[run.place] ?? Infinity;
    if (first >= fromMinute) return run;
    rooms.open(first, run.used, run.used);
    run.used = 0;
    const endMinute = Math.min(rooms.nextEnd, fromMinute);
    for (; (minute[run.place] ?? Infinity) < endMinute; run.place++) run.used += units[run.place] ?? 0;
  }
}

/**
 * Skips minutes in which both the record and the replay admit all requests. The function must be fast, because it skips most minutes. The
 * function takes separate arguments, because a single argument object would make the function twice as slow.
 *
 * @returns whether another minute is left before `endMinute`
 */
function admitWhole(
  { minute, refused, bySecond, banned, undecided }: KeyMinutes,
  units: Uint32Array | Float64Array,
  run: Run,
  endMinute: number,
  most: number,
  room: number,
): boolean {
  let { place, used } = run;
  let isLeft = false;
  for (; place < minute.length && (minute[place] ?? 0) < endMinute; place++) {
    const here = units[place] ?? 0;
    const others =
      (refused[place] ?? 0) | (bySecond[place] ?? 0) | (banned[place] ?? 0) | (undecided[place] ?? 0);
    if (others !== 0 || here > most || used + here > room) {
      isLeft = true;
      break;
    }
    used += here;
  }
  run.place = place;
  run.used = used;
  return isLeft;
}
