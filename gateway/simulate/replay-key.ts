import type { BanPolicy, Limits } from '../model.ts';
import type { KeyMinutes } from '../usage/key-minutes.ts';
import { PossibleBans } from './possible-bans.ts';
import { type BeforeEdit, type Calendar, fitting, WindowRooms } from './window-rooms.ts';

/** What a key is limited by. */
export interface Terms {
  readonly limits: Limits;
  readonly bans: BanPolicy;
}

/** One key's record, and the terms that it is replayed under. */
export interface ReplayedKey {
  /** Those before `fromMinute` only tell what the windows had used by then: they begin with a day. */
  readonly minutes: KeyMinutes;
  /** The first minute that is replayed: the edit is in force from here on, and what was used before stays used. */
  readonly fromMinute: number;
  /** What was used of the month before `minutes` begin. */
  readonly monthBefore?: BeforeEdit['month'];
  readonly present: Terms;
  readonly edited: Terms;
}

/** Requests of a key in the period. What is refused is what was offered and not admitted, bans and 503 included. */
export interface KeyVerdict {
  readonly offered: number;
  readonly refusedNow: number;
  /** With the bans and the refusals by the second that were recorded, as far as these are possible then. */
  readonly refusedThen: number;
  /** What is certain, where bans or the second depend on the order of requests within a minute. */
  readonly refusedThenMin: number;
  readonly refusedThenMax: number;
  /** The number of the first minute in which something is refused then; Infinity where nothing is. */
  readonly firstRefusedMinute: number;
  /** Minutes in which something was refused or banned: clients slowed down, and what they would have sent is not known. */
  readonly censoredMinutes: number;
  /** Requests that windows refused, as recorded, and as the present terms say. */
  readonly recordedRefusals: number;
  readonly replayedRefusals: number;
}

/** Hears of each minute in which the present terms say something else than what was recorded. */
export type OnDifference = (minute: number, recordedRefusals: number, replayedRefusals: number) => void;

/** Hears what each minute of the period would have admitted; for a chart. */
export type OnMinute = (minute: number, admittedThen: number) => void;

/**
 * Replays the record of one key: first under its present terms, as a proof, then under others.
 *
 * Bans, refusals by the second and requests without a decision (503) are not made by whole minutes. They are taken as they
 * were recorded, where they are possible; `boundsOf` does without that.
 */
export function replayKey(
  key: ReplayedKey,
  calendar: Calendar,
  onDifference?: OnDifference,
  onMinute?: OnMinute,
): KeyVerdict {
  const { minutes, fromMinute, monthBefore, present, edited } = key;
  const { minute: numbers, admitted, refused, bySecond, banned, undecided } = minutes;
  const before = { editMinute: fromMinute, limits: present.limits, month: monthBefore };
  const nowRooms = new WindowRooms(present.limits, calendar, before);
  const thenRooms = new WindowRooms(edited.limits, calendar, before);
  const [secondNow, secondThen] = [secondOf(present.limits, calendar), secondOf(edited.limits, calendar)];
  const possible = new PossibleBans(edited.bans, calendar.minuteMs);
  const [minuteMaxNow, minuteMaxThen] = [nowRooms.minuteMax, thenRooms.minuteMax];
  let [offered, admittedNow, admittedThen, recordedRefusals, replayedRefusals, censoredMinutes] = [
    0, 0, 0, 0, 0, 0,
  ];
  // Most minutes are admitted whole under both terms: these take a shorter way.
  const wholeMost =
    onMinute === undefined
      ? Math.min(
          minuteMaxNow,
          minuteMaxThen,
          secondNow?.inMinute ?? Infinity,
          secondThen?.inMinute ?? Infinity,
        )
      : -1;
  const run = { place: 0, used: 0 };
  let admittedWhole = 0;
  let firstRefusedMinute = Infinity;
  let isCertain = secondThen === undefined;
  let [usedNow, usedThen] = [0, 0];
  for (let place = 0; place < numbers.length; ) {
    const first = numbers[place] ?? 0;
    const isReplayed = first >= fromMinute;
    let roomNow = nowRooms.open(first, usedNow);
    let roomThen = thenRooms.open(first, usedThen);
    const endMinute = Math.min(nowRooms.nextEnd, thenRooms.nextEnd, isReplayed ? Infinity : fromMinute);
    [usedNow, usedThen] = [0, 0];
    for (; place < numbers.length; place++) {
      const minute = numbers[place] ?? 0;
      if (minute >= endMinute) break;
      const admittedHere = admitted[place] ?? 0;
      const bySecondHere = bySecond[place] ?? 0;
      const bannedHere = banned[place] ?? 0;
      const recorded = (refused[place] ?? 0) + bySecondHere;
      const refusedHere = recorded + bannedHere + (undecided[place] ?? 0);
      if (
        refusedHere === 0 &&
        admittedHere <= wholeMost &&
        admittedHere <= Math.min(roomNow, roomThen) &&
        isReplayed
      ) {
        run.place = place;
        admitWhole(minutes, run, endMinute, wholeMost, Math.min(roomNow, roomThen));
        usedNow += run.used;
        usedThen += run.used;
        roomNow -= run.used;
        roomThen -= run.used;
        admittedWhole += run.used;
        place = run.place - 1;
        continue;
      }
      const decided = admittedHere + recorded;
      // What was admitted is used, whatever should have been: a minute that differs makes no later one differ.
      usedNow += admittedHere;
      if (bannedHere > 0) isCertain = false;
      if (!isReplayed) {
        usedThen += admittedHere;
        if (recorded > 0 && possible.refuse(minute, recorded)) isCertain = false;
        continue;
      }
      const expected = fitting(decidedByMinute(decided, bySecondHere, secondNow), minuteMaxNow, roomNow);
      roomNow -= admittedHere;
      if (expected !== admittedHere) onDifference?.(minute, recorded, decided - expected);
      recordedRefusals += recorded;
      replayedRefusals += decided - expected;
      if (recorded + bannedHere > 0) censoredMinutes += 1;

      const admits = fitting(decidedByMinute(decided, bySecondHere, secondThen), minuteMaxThen, roomThen);
      roomThen -= admits;
      usedThen += admits;
      if (admits < decided) {
        firstRefusedMinute = Math.min(firstRefusedMinute, minute);
        if (possible.refuse(minute, decided - admits)) isCertain = false;
      } else if (bannedHere > 0) firstRefusedMinute = Math.min(firstRefusedMinute, minute);
      offered += admittedHere + refusedHere;
      admittedNow += admittedHere;
      admittedThen += admits;
      onMinute?.(minute, admits);
    }
  }
  offered += admittedWhole;
  admittedNow += admittedWhole;
  admittedThen += admittedWhole;
  const estimate = offered - admittedThen;
  const [least, most] = isCertain ? [estimate, estimate] : boundsOf(key, calendar);
  return {
    offered,
    refusedNow: offered - admittedNow,
    refusedThen: Math.min(Math.max(estimate, least), most),
    refusedThenMin: least,
    refusedThenMax: most,
    firstRefusedMinute,
    censoredMinutes,
    recordedRefusals,
    replayedRefusals,
  };
}

/**
 * Goes over the minutes of which all was admitted and is again, as long as there is room. It is a function of its own, without
 * an object for its arguments, since that makes it twice as fast.
 */
function admitWhole(
  { minute, admitted, refused, bySecond, banned, undecided }: KeyMinutes,
  run: { place: number; used: number },
  endMinute: number,
  most: number,
  room: number,
): void {
  let [place, used] = [run.place, 0];
  for (; place < minute.length && (minute[place] ?? 0) < endMinute; place++) {
    const here = admitted[place] ?? 0;
    const others =
      (refused[place] ?? 0) | (bySecond[place] ?? 0) | (banned[place] ?? 0) | (undecided[place] ?? 0);
    if (others !== 0 || here > most || used + here > room) break;
    used += here;
  }
  run.place = place;
  run.used = used;
}

/**
 * How many requests are refused then, at least and at most, whatever their order within each minute was:
 *
 * - At least: nobody is banned, and requests are spread over the seconds of a minute. Windows lie in one another, so
 *   admitting whatever finds room admits the most up to every instant, and no order is refused less.
 * - At most: where a ban can have begun, nothing is admitted for as long as it can last. The requests of a minute come in one
 *   second; but as many as were admitted under a limit of the second that was not higher find room under this one too.
 */
function boundsOf(
  { minutes, fromMinute, monthBefore, present, edited }: ReplayedKey,
  calendar: Calendar,
): readonly [least: number, most: number] {
  const before = { editMinute: fromMinute, limits: present.limits, month: monthBefore };
  const mostRooms = new WindowRooms(edited.limits, calendar, before);
  const leastRooms = new WindowRooms(edited.limits, calendar, before);
  const { minuteMax } = mostRooms;
  const [secondNow, second] = [secondOf(present.limits, calendar), secondOf(edited.limits, calendar)];
  const keepsSecond = second === undefined || (secondNow !== undefined && second.max >= secondNow.max);
  const possible = new PossibleBans(edited.bans, calendar.minuteMs);
  let [offered, mostAdmitted, leastAdmitted, mostUsed, leastUsed] = [0, 0, 0, 0, 0];
  for (let place = 0; place < minutes.minute.length; ) {
    const first = minutes.minute[place] ?? 0;
    const isReplayed = first >= fromMinute;
    let mostRoom = mostRooms.open(first, mostUsed);
    let leastRoom = leastRooms.open(first, leastUsed);
    const endMinute = Math.min(mostRooms.nextEnd, isReplayed ? Infinity : fromMinute);
    [mostUsed, leastUsed] = [0, 0];
    for (; place < minutes.minute.length; place++) {
      const minute = minutes.minute[place] ?? 0;
      if (minute >= endMinute) break;
      const admitted = minutes.admitted[place] ?? 0;
      const banned = minutes.banned[place] ?? 0;
      const recorded = (minutes.refused[place] ?? 0) + (minutes.bySecond[place] ?? 0);
      if (!isReplayed) {
        mostUsed += admitted;
        leastUsed += admitted;
        if (recorded > 0) possible.refuse(minute, recorded);
        if (banned > 0) possible.recorded(minute);
        continue;
      }
      const decided = admitted + recorded + banned;
      offered += decided + (minutes.undecided[place] ?? 0);
      const inOneSecond = Math.min(decided, second?.max ?? decided);
      const surelyPassing = keepsSecond ? Math.max(inOneSecond, admitted) : inOneSecond;
      const refusedMost = decided - fitting(surelyPassing, minuteMax, mostRoom);
      const most = fitting(Math.min(decided, second?.inMinute ?? decided), minuteMax, mostRoom);
      const isBanned = possible.covers(minute);
      const begins = refusedMost > 0 && possible.refuse(minute, refusedMost);
      const least = fitting(isBanned ? 0 : begins ? inOneSecond : surelyPassing, minuteMax, leastRoom);
      mostRoom -= most;
      leastRoom -= least;
      mostUsed += most;
      leastUsed += least;
      mostAdmitted += most;
      leastAdmitted += least;
    }
  }
  return [offered - mostAdmitted, offered - leastAdmitted];
}

/** How many of these requests are for longer windows to decide, once the second has refused what was recorded and is possible. */
function decidedByMinute(decided: number, bySecond: number, second: Second | undefined): number {
  if (second === undefined) return decided;
  const refused = Math.min(bySecond, Math.max(0, decided - second.max));
  return Math.min(decided - refused, second.inMinute);
}

interface Second {
  readonly max: number;
  /** In all seconds of a minute. */
  readonly inMinute: number;
}

function secondOf(limits: Limits, { minuteMs, windowsMs }: Calendar): Second | undefined {
  const max = limits.find(({ window }) => window === 'second')?.max;
  return max === undefined ? undefined : { max, inMinute: (max * minuteMs) / windowsMs.second };
}
