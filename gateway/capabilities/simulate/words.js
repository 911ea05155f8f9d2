import { counted, figure } from '../../shared/words/figures.js';

/**
 * @typedef {object} Refusals
 * @property {number} refusedNow
 * @property {number} refusedThen
 * @property {number | undefined} [refusedThenMin] absent if it equals `refusedThen`
 * @property {number | undefined} [refusedThenMax]
 */

/** Whether the order of the requests decides if more or fewer of them are refused than on record, or as many. @param {Refusals} refusals */
export function isUncertain({
  refusedNow,
  refusedThen,
  refusedThenMin = refusedThen,
  refusedThenMax = refusedThen,
}) {
  return refusedThenMin < refusedThenMax && refusedThenMin <= refusedNow && refusedNow <= refusedThenMax;
}

/** Says how many requests would have been refused if it is not certain whether these are more or fewer. The text begins with the number. @param {Required<Refusals>} totals */
export function uncertainText({ refusedNow, refusedThen, refusedThenMin = 0, refusedThenMax = 0 }) {
  const what =
    refusedThenMin === refusedNow ? 'More' : refusedThenMax === refusedNow ? 'Fewer' : 'More or fewer';
  return `${counted(refusedThen, 'request')} would have been refused (${figure(refusedThenMin)} to ${figure(refusedThenMax)}), and ${figure(refusedNow)} were. ${what} is not certain, because the number depends on the order of the requests.`;
}

/** Says what else the replay took into account; empty if nothing. @param {{ keysGranted: number, keysChanged: number }} totals */
export function termsText({ keysGranted, keysChanged }) {
  const grants = `${counted(keysGranted, 'key')} had a grant in this period, which replaces limits also here.`;
  const changes = `The limits of ${counted(keysChanged, 'key')} changed in this period. The minute of a change is replayed under its last limits, so a few requests of it may be wrong.`;
  return [keysGranted > 0 && grants, keysChanged > 0 && changes].filter(Boolean).join(' ');
}
