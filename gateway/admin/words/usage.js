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
