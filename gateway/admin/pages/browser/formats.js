// Formats of numbers and times. The functions get the present time as an argument.

/** @typedef {Readonly<Record<string, any>> & { readonly groups?: Readonly<Record<string, object>> | undefined }} LimitsByField */

const wholeNumber = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDecimal = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

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

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** The placeholder for a figure that is not known. */
export const noFigure = '–';

/** Formats a count, for example 1,204. @param {number | undefined} number */
export function count(number) {
  return number === undefined ? noFigure : wholeNumber.format(number);
}

/** Formats a rate. A small rate has one decimal. @param {number | undefined} number */
export function rate(number) {
  if (number === undefined) return noFigure;
  if (number === 0) return '0';
  return number < 10 ? oneDecimal.format(number) : wholeNumber.format(number);
}

/** Formats a share as a percentage, for example 0.8 %. @param {number | undefined} part */
export function percent(part) {
  if (part === undefined || Number.isNaN(part)) return noFigure;
  const hundredths = part * 100;
  if (hundredths === 0) return '0 %';
  if (hundredths < 0.1) return '< 0.1 %';
  return `${hundredths < 10 ? oneDecimal.format(hundredths) : wholeNumber.format(Math.floor(hundredths))} %`;
}

/**
 * Formats a duration in milliseconds, without the unit. A duration below 10 ms has two significant digits.
 *
 * @param {number | undefined} ms
 */
export function milliseconds(ms) {
  if (ms === undefined) return noFigure;
  if (ms < 1) return ms.toFixed(2);
  if (ms < 10) return ms.toFixed(1);
  return wholeNumber.format(ms);
}

/** Formats a duration in words, for example 24 s, 13 h 28 min, 12 days. @param {number} ms */
export function duration(ms) {
  const length = Math.max(0, ms);
  if (length < minuteMs) return `${Math.floor(length / secondMs)} s`;
  if (length < hourMs) return `${Math.floor(length / minuteMs)} min`;
  if (length < 2 * dayMs) {
    const minutes = Math.floor((length % hourMs) / minuteMs);
    const hours = `${Math.floor(length / hourMs)} h`;
    return minutes === 0 || length >= dayMs ? hours : `${hours} ${minutes} min`;
  }
  return `${wholeNumber.format(Math.floor(length / dayMs))} days`;
}

/**
 * Formats a time relative to now, for example "in 24 s" or "12 s ago".
 *
 * @param {number} atMs
 * @param {number} nowMs
 */
export function relative(atMs, nowMs) {
  if (Math.abs(atMs - nowMs) < secondMs) return 'now';
  return atMs > nowMs ? `in ${duration(atMs - nowMs)}` : `${duration(nowMs - atMs)} ago`;
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

/** Formats a time with its date, in local time and in UTC. @param {number} atMs */
export function fullInstant(atMs) {
  return `${inFull.format(atMs)} (${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC)`;
}

/** Formats a time in UTC to the minute, for example "2027-01-01 00:00 UTC". @param {string} iso an ISO 8601 time in UTC */
export function utcMinute(iso) {
  return `${iso.slice(0, 16).replace('T', ' ')} UTC`;
}

/**
 * Formats limits in words, for example "60 a minute, 1,000 a day, 5 a minute for the group reports".
 *
 * @param {LimitsByField} limits
 */
export function limitsInWords({ groups = {}, ...limits }) {
  const texts = (/** @type {object} */ fields, /** @type {string} */ prefix) =>
    Object.entries(fields).flatMap(([name, limit]) =>
      name === 'operations' ? [] : `${count(limit)} ${per(prefix + name.slice('per'.length).toLowerCase())}`,
    );
  const ofGroups = Object.entries(groups).flatMap(([name, fields]) => texts(fields, `${name}-`));
  return [...texts(limits, ''), ...ofGroups].join(', ');
}

/** Returns a limit's window with its article: "a minute", "an hour", "a minute for the group reports". @param {string} policy */
export function per(policy) {
  return `${windowIn(policy) === 'hour' ? 'an' : 'a'} ${windowText(policy)}`;
}

/** Returns "minute", or "minute for the group reports" for the policy `reports-minute`. @param {string} policy */
export function windowText(policy) {
  const group = groupIn(policy);
  return group === undefined ? policy : `${windowIn(policy)} for the group ${group}`;
}

/** Returns the window of a policy, for example "minute" for `reports-minute`. @param {string} policy */
export function windowIn(policy) {
  return policy.slice(policy.lastIndexOf('-') + 1);
}

/** Returns the group of a policy, for example "reports" for `reports-minute`. @param {string} policy */
export function groupIn(policy) {
  return policy.includes('-') ? policy.slice(0, policy.lastIndexOf('-')) : undefined;
}

/** Shortens a version of the configuration to its first digits. @param {string | undefined} version */
export function shortVersion(version) {
  return version === undefined ? noFigure : version.slice(0, 6);
}

/**
 * Formats a number with its noun, for example "1 key" or "2 keys".
 *
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
