import { figure } from '../../shared/words/figures.js';

/**
 * Lists the number of refused requests for each limit and each other reason, such as "minute 10, ban 2". The largest
 * number comes first.
 *
 * @param {{ refused: Readonly<Record<string, number>>, banned: number, undecided?: number | undefined }} row
 */
export function refusedInWords({ refused, banned, undecided = 0 }) {
  return Object.entries({ ...refused, ban: banned, 'no decision': undecided })
    .filter(([, requests]) => requests > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, requests]) => `${name} ${figure(requests)}`)
    .join(', ');
}

/**
 * The change of a number in hundredths, such as "+12 %". Without an earlier number, the text says so.
 *
 * @param {number} now
 * @param {number} before
 */
export function changeInWords(now, before) {
  if (before === 0) return now === 0 ? 'none' : 'none before';
  const hundredths = Math.round((now / before - 1) * 100);
  return `${hundredths > 0 ? '+' : ''}${hundredths < 0 ? '-' : ''}${figure(Math.abs(hundredths))} %`;
}
