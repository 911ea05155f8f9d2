// Formats of times. All times are UTC, as in the sentences of the admin API, and the header of the pages says so. The
// functions get the present time as an argument.

// The formats are created once, because creating a format takes longer than using it.
const timeOfDay = timeFormat({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const hourAndMinute = timeFormat({ hour: '2-digit', minute: '2-digit' });
const dayAndMonth = timeFormat({ day: 'numeric', month: 'short' });
const weekday = timeFormat({ weekday: 'short', day: 'numeric', month: 'short' });
const month = timeFormat({ month: 'short', year: 'numeric' });
const inFull = timeFormat({
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});

/** @param {Intl.DateTimeFormatOptions} options */
function timeFormat(options) {
  return new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' });
}

/**
 * Formats a time, for example 10:31:07. The text includes the date if the time is not today.
 *
 * @param {number} atMs
 * @param {number} nowMs
 */
export function clock(atMs, nowMs) {
  const time = timeOfDay.format(atMs);
  return dayAndMonth.format(atMs) === dayAndMonth.format(nowMs)
    ? time
    : `${dayAndMonth.format(atMs)} ${time}`;
}

/** The same with its zone, for rows that are quoted: 28 Nov 10:31:07 UTC. @param {number} atMs @param {number} nowMs */
export function utcClock(atMs, nowMs) {
  return `${clock(atMs, nowMs)} UTC`;
}

/**
 * Formats the hour and minute for an axis. At midnight, the text is the date instead of the time.
 *
 * @param {number} atMs
 */
export function axisTime(atMs) {
  const time = hourAndMinute.format(atMs);
  return time === '00:00' ? dayAndMonth.format(atMs) : time;
}

/**
 * Formats a day or month for an axis: 21 Nov, Nov 2026.
 *
 * @param {'day' | 'month'} step @param {number} atMs
 */
export function axisPeriod(step, atMs) {
  return (step === 'day' ? dayAndMonth : month).format(atMs);
}

/**
 * Names a period by its beginning: a day (Sat, 21 Nov), a month (Nov 2026), or a time to the minute.
 *
 * @param {'day' | 'month' | undefined} step @param {number} atMs @param {number} nowMs
 */
export function periodText(step, atMs, nowMs) {
  if (step === undefined) return clock(atMs, nowMs).slice(0, -':00'.length);
  return (step === 'day' ? weekday : month).format(atMs);
}

/** Formats a time with its date and zone: Sun, 22 Nov 2026, 10:31:07 UTC. @param {number} atMs */
export function fullInstant(atMs) {
  return inFull.format(atMs);
}
