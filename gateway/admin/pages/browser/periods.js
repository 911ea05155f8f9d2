import { dayMs, minuteMs } from '../../../shared/words/figures.js';

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
