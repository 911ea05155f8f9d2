// For sentences, terminals and pages. A browser imports this file, too.

const secondMs = 1_000;
export const minuteMs = 60 * secondMs;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** For a figure that is not known. */
export const noFigure = '–';

/** With thousands separators: 1,204. @param {number | undefined} number */
export function figure(number) {
  return number === undefined ? noFigure : wholeNumber(number);
}

/**
 * "1 key", "2 keys".
 *
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function counted(number, one, many = `${one}s`) {
  return `${figure(number)} ${number === 1 ? one : many}`;
}

/** A small rate has one decimal. @param {number | undefined} number */
export function rate(number) {
  if (number === undefined) return noFigure;
  if (number === 0) return '0';
  return number < 10 ? oneDecimal(number) : wholeNumber(number);
}

/** For example 0.8 %. A share below 100 % is never rounded up to 100 %. @param {number | undefined} part */
export function percent(part) {
  if (part === undefined || Number.isNaN(part)) return noFigure;
  const hundredths = part * 100;
  if (hundredths === 0) return '0 %';
  if (hundredths < 0.1) return '< 0.1 %';
  return `${hundredths < 10 ? oneDecimal(hundredths) : wholeNumber(Math.floor(hundredths))} %`;
}

/** Without the unit. A duration below 10 ms has two significant digits. @param {number | undefined} ms */
export function milliseconds(ms) {
  if (ms === undefined) return noFigure;
  if (ms < 1) return ms.toFixed(2);
  if (ms < 10) return ms.toFixed(1);
  return wholeNumber(ms);
}

/** 24 s, 13 h 28 min, 12 days. @param {number} ms */
export function duration(ms) {
  if (Number.isNaN(ms)) return noFigure;
  const length = Math.max(0, ms);
  if (length < minuteMs) return `${Math.floor(length / secondMs)} s`;
  if (length < hourMs) return `${Math.floor(length / minuteMs)} min`;
  if (length < 2 * dayMs) {
    const minutes = Math.floor((length % hourMs) / minuteMs);
    const hours = `${Math.floor(length / hourMs)} h`;
    return minutes === 0 || length >= dayMs ? hours : `${hours} ${minutes} min`;
  }
  return `${wholeNumber(Math.floor(length / dayMs))} days`;
}

/**
 * "in 24 s", "12 s ago".
 *
 * @param {number} atMs
 * @param {number} nowMs
 */
export function relative(atMs, nowMs) {
  if (Math.abs(atMs - nowMs) < secondMs) return 'now';
  return atMs > nowMs ? `in ${duration(atMs - nowMs)}` : `${duration(nowMs - atMs)} ago`;
}

/** Formats a time in UTC to the minute, for example "2027-01-01 00:00 UTC". @param {string} iso an ISO 8601 time in UTC */
export function utcMinute(iso) {
  return `${iso.slice(0, 16).replace('T', ' ')} UTC`;
}

/** Formats a time in UTC to the second, for example "2027-01-01 00:00:00". @param {string} iso an ISO 8601 time in UTC */
export function utcSecond(iso) {
  return iso.slice(0, 19).replace('T', ' ');
}

/** Formats the beginning of a period as "2026-11-25 00:00 UTC". Seconds are added unless they are zero. @param {number} atMs */
export function beginning(atMs) {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ').replace(/:00$/, '')} UTC`;
}

/** Formats the end of a period. The midnight after 2026-11-25 becomes "2026-11-25 24:00 UTC". @param {number} atMs */
export function ending(atMs) {
  return atMs % dayMs === 0 ? `${new Date(atMs - 1).toISOString().slice(0, 10)} 24:00 UTC` : beginning(atMs);
}

/** "a, b and c". @param {readonly string[]} parts */
export function listOf(parts, last = 'and') {
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} ${last} ${parts.at(-1)}`;
}

/** @param {string | undefined} version */
export function shortVersion(version) {
  return version === undefined ? noFigure : version.slice(0, 6);
}

/** @param {number} number */
function wholeNumber(number) {
  return withSeparators(number.toFixed(0));
}

/** `toFixed` alone would round 0.15 down, because the nearest binary number is a little below 0.15. @param {number} number */
function oneDecimal(number) {
  return (Math.round(number * 10) / 10).toFixed(1);
}

/**
 * `Intl.NumberFormat` does the same, but takes 14 ms of CPU time to load, half of the time of an empty Node process. @param {string}
 * decimal
 */
function withSeparators(decimal) {
  return decimal.replace(/\B(?=(?:\d{3})+(?!\d))/g, ',');
}

/**
 * Returns a share as the configuration states it: "3 %", "0.5 %".
 *
 * @param {number} share from 0 to 1
 */
export function percentText(share) {
  return `${Number((share * 100).toFixed(3))} %`;
}
