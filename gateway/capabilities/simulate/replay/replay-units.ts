import {
  costsAt,
  editedSeconds,
  editedSteps,
  middle,
  minuteAt,
  possibleBans,
  type Replayed,
  type ReplayedKey,
  type ReplaySinks,
  refusedBySecond,
  type Second,
  sparedAt,
} from './replayed-key.ts';
import { leastIn, UnitRooms } from './unit-rooms.ts';
import type { Calendar } from './window-rooms.ts';

/**
 * Computes bounds for the number of admitted requests under the edited limits and bans. The requests may have different costs
 * (`UnitRooms`). If all requests of a minute cost 1 unit or nothing, bans and the limit per second are replayed as for a key without
 * costs. In other minutes:
 *
 * - The limit per second may admit a request that was refused, because the refused request may have been expensive.
 *
 * - All requests may arrive in one second, unless every request of the minute was admitted and the limit per second is not lowered.
 *
 * A window never refuses a free request, but a ban does.
 */
export function replayEditedUnits(
  key: ReplayedKey,
  calendar: Calendar,
  { onMinute, onRefused }: ReplaySinks,
): Replayed {
  const { minutes, fromMinute, usedEarlier } = key;
  const rooms = new UnitRooms(editedSteps(key), calendar, usedEarlier);
  const bans = possibleBans(key, calendar);
  let seconds = editedSeconds(key, rooms.limits, fromMinute, calendar);
  let secondsUntil = fromMinute;
  let [offered, mostAdmitted, leastAdmitted, firstRefusedMinute] = [0, 0, 0, Infinity];
  for (const place of minutes.minute.keys()) {
    const here = minuteAt(minutes, place);
    const { free, freeAdmitted, units } = costsAt(minutes, place);
    rooms.open(here.minute);
    if (here.minute < fromMinute) {
      rooms.charge(units.admitted);
      continue;
    }
    if (here.minute >= secondsUntil) {
      seconds = editedSeconds(key, rooms.limits, here.minute, calendar);
      secondsUntil = rooms.nextEnd;
    }
    const { secondNow, second, keepsAdmitted, keepsRefused } = seconds;
    const decided = here.offered - here.undecided;
    const requests = decided - free;
    const extra = units.admitted + units.refused + units.bySecond + units.banned - requests;
    const inOneSecond = Math.min(requests, second.max);
    let mostBySecond = second.inMinute;
    let leastBySecond = second.max;
    if (extra === 0) {
      const stayRefused = keepsRefused ? refusedBySecond(requests, here.bySecond, secondNow) : 0;
      mostBySecond = Math.min(requests - stayRefused, second.inMinute);
      leastBySecond = keepsAdmitted ? Math.max(inOneSecond, here.admitted - freeAdmitted) : inOneSecond;
    } else if (keepsAdmitted && decided === here.admitted) {
      leastBySecond = Infinity;
    }
    const isBanned = sparedAt(bans, minutes, place) < decided;
    const room = Math.min(rooms.certainRoom(), leastBySecond);
    const refused = requests - leastIn(requests, extra, room, false);
    const mayBeBanned = refused > 0 && bans.refuse(here.minute, refused);
    if (mayBeBanned) leastBySecond = Math.min(leastBySecond, second.max);
    const { least, most } = rooms.admit({
      requests,
      extra,
      mostBySecond,
      leastBySecond,
      isBanned,
      mayBeBanned,
    });
    const admittedBefore = middle(mostAdmitted, leastAdmitted);
    offered += here.offered;
    mostAdmitted += most + free;
    leastAdmitted += least + (isBanned || mayBeBanned ? 0 : free);
    const admitted = middle(mostAdmitted, leastAdmitted) - admittedBefore;
    if (admitted < here.offered) {
      firstRefusedMinute = Math.min(firstRefusedMinute, here.minute);
      onRefused?.(here.minute, here.offered - admitted);
    }
    onMinute?.(here.minute, admitted);
  }
  return { offered, mostAdmitted, leastAdmitted, firstRefusedMinute };
}

/**
 * Returns the number of refusals that the limits in force can have caused in a minute, to check the record. The number of units that were
 * used before the minute is exact. The recorded number is possible if the windows have room for the admitted units, and if each refused
 * request may have cost more units than remained. If the recorded number is impossible, the nearest possible number is returned.
 */
export function possibleRefusals(
  { minutes, place }: { readonly minutes: ReplayedKey['minutes']; readonly place: number },
  room: number,
  second: Second,
): number {
  const { admitted, recorded, bySecond } = minuteAt(minutes, place);
  const { freeAdmitted, units } = costsAt(minutes, place);
  const requests = admitted - freeAdmitted + recorded;
  const decidedUnits = units.admitted + units.refused + units.bySecond;
  if (decidedUnits === requests) {
    const passing = Math.min(requests - refusedBySecond(requests, bySecond, second), second.inMinute);
    return requests - Math.max(0, Math.min(passing, room));
  }
  const overshoot = units.admitted - Math.max(0, Math.min(room, second.inMinute));
  if (overshoot > 0) {
    const extraAdmitted = units.admitted - (admitted - freeAdmitted);
    return recorded + Math.max(1, overshoot - extraAdmitted);
  }
  const leastCost = Math.max(0, room) - units.admitted + 1;
  const refused = Math.min(recorded - bySecond, Math.floor(units.refused / leastCost));
  return refused + (decidedUnits > second.max ? bySecond : 0);
}
