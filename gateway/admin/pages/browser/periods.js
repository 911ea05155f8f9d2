import { dayMs, hourMs, minuteMs } from '../../../shared/words/figures.js';

/** The periods that pages offer, by their names in URLs. */
export const periods = {
  '15m': { text: '15 min', lengthMs: 15 * minuteMs },
  '1h': { text: '1 h', lengthMs: 60 * minuteMs },
  '24h': { text: '24 h', lengthMs: dayMs },
  '7d': { text: '7 days', lengthMs: 7 * dayMs },
};

/** @typedef {keyof typeof periods} PeriodName */

/**
 * Returns the period that the operator has chosen, and the choices of the page. The value of a choice is the name of its
 * period. The first period is the default: its value is an empty text, so it is not in the URL.
 *
 * @param {readonly [PeriodName, ...PeriodName[]]} names
 * @param {string | null} asked the name in the URL
 */
export function chosenPeriod([usual, ...others], asked) {
  const chosen = others.find((name) => name === asked);
  /** @type {Record<string, string>} */
  const texts = {
    '': periods[usual].text,
    ...Object.fromEntries(others.map((name) => [name, periods[name].text])),
  };
  return { ...periods[chosen ?? usual], value: chosen ?? '', texts };
}

const recordPeriods = /** @type {const} */ ({
  '': '24 h',
  '1h': '1 h',
  today: 'today',
  yesterday: 'yesterday',
  '7d': '7 days',
});

/**
 * Returns the chosen period of the usage record. The parameters `from` and `to` in the URL come before a named period. They
 * are dates or times in UTC, and a date as `to` means the whole day. The record counts whole hours, so a period begins with
 * an hour, and the polled path stays the same for an hour.
 *
 * @param {URLSearchParams} query of the page
 * @param {number} now epoch ms
 * @returns {{ value: string | undefined, texts: Record<string, string>, text: string, from?: string | undefined, to?: string | undefined }}
 * `value`: undefined for `from` and `to`; `text`: the period in words
 */
export function recordPeriod(query, now) {
  const texts = recordPeriods;
  const [from, to] = ['from', 'to'].map((name) => query.get(name) || undefined);
  if (from !== undefined || to !== undefined) {
    const last = to !== undefined && /^[\d-]{10}$/.test(to) ? endOfDay(to) : to;
    const text = `${from === undefined ? '' : `from ${from} `}${to === undefined ? 'until now' : `to ${to}`}`;
    return { value: undefined, texts, text, from, to: last };
  }
  const value = Object.keys(texts).find((name) => name === query.get('period')) ?? '';
  const dayOf = (/** @type {number} */ atMs) => new Date(atMs).toISOString().slice(0, 10);
  const hourBefore = (/** @type {number} */ lengthMs) =>
    `${new Date(now - lengthMs).toISOString().slice(0, 13)}:00Z`;
  const text = texts[/** @type {keyof typeof texts} */ (value)];
  switch (value) {
    case '1h':
      return { value, texts, text, from: hourBefore(hourMs) };
    case 'today':
      return { value, texts, text, from: dayOf(now) };
    case 'yesterday':
      return { value, texts, text, from: dayOf(now - dayMs), to: endOfDay(dayOf(now - dayMs)) };
    case '7d':
      return { value, texts, text, from: hourBefore(7 * dayMs) };
    default:
      return { value, texts, text };
  }
}

/** The last second of a day in UTC. @param {string} day */
function endOfDay(day) {
  return `${day}T23:59:59Z`;
}
