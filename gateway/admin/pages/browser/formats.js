// Formats of times and limits. The functions get the present time as an argument.

// The formats are created once, because creating a format takes longer than using it.
const timeOfDay = timeFormat({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const hourAndMinute = timeFormat({ hour: '2-digit', minute: '2-digit' });
const dayAndMonth = timeFormat({ day: 'numeric', month: 'short' });
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
  return new Intl.DateTimeFormat('en-GB', options);
}

/**
 * Formats the local time, for example 10:31:07. The text includes the date if the time is not today.
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

/**
 * Formats the local hour and minute for an axis. At midnight, the text is the date instead of the time.
 *
 * @param {number} atMs
 */
export function axisTime(atMs) {
  const time = hourAndMinute.format(atMs);
  return time === '00:00' ? dayAndMonth.format(atMs) : time;
}

const utcDay = timeFormat({ day: 'numeric', month: 'short', timeZone: 'UTC' });
const utcWeekday = timeFormat({ weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' });
const utcMonth = timeFormat({ month: 'short', year: 'numeric', timeZone: 'UTC' });

/**
 * Formats a day or month of UTC for an axis: 21 Nov, Nov 2026.
 *
 * @param {'day' | 'month'} step @param {number} atMs
 */
export function axisPeriod(step, atMs) {
  return (step === 'day' ? utcDay : utcMonth).format(atMs);
}

/** A time of UTC, with its date if it is not today: 28 Nov 10:31:07 UTC. @param {number} atMs @param {number} nowMs */
export function utcClock(atMs, nowMs) {
  const [day, today] = [atMs, nowMs].map((ms) => utcDay.format(ms));
  return `${day === today ? '' : `${day} `}${new Date(atMs).toISOString().slice(11, 19)} UTC`;
}

/**
 * Names a period by its beginning: a day (Sat, 21 Nov) or a month (Nov 2026) of UTC, or a local time to the minute.
 *
 * @param {'day' | 'month' | undefined} step @param {number} atMs @param {number} nowMs
 */
export function periodText(step, atMs, nowMs) {
  if (step === undefined) return clock(atMs, nowMs).slice(0, -':00'.length);
  return (step === 'day' ? utcWeekday : utcMonth).format(atMs);
}

/** Formats a time with its date, in local time and in UTC. @param {number} atMs */
export function fullInstant(atMs) {
  return `${inFull.format(atMs)} (${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC)`;
}
