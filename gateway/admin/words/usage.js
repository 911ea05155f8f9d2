import { figure, utcSecond } from '../../shared/words/figures.js';

/** @import { BodyOf } from '../wires/api-types.ts' */
/** @import { List } from './list.js' */

/**
 * Lists the number of refused requests for each limit and each other reason, such as "minute 10, ban 2". The largest
 * number comes first.
 *
 * @param {{ refused: Readonly<Record<string, number>>, banned: number, undecided?: number | undefined, unauthorized?: number | undefined }} row
 */
export function refusedInWords({ refused, banned, undecided = 0, unauthorized = 0 }) {
  return Object.entries({ ...refused, ban: banned, 'no decision': undecided, 'invalid secret': unauthorized })
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

/** @typedef {BodyOf<'/usage'>} MonthPage */

/**
 * A key of the list. `before`: its offered requests in the month that the list is compared with. `isOver`: whether the month
 * is over, by default true. `shownUnits`: absent if each request cost 1 unit.
 *
 * @typedef {MonthPage['keys'][number] & { readonly before?: number, readonly isOver?: boolean, readonly shownUnits?: number }} MonthKey
 */

/** The usage of keys in a month, for bills. A removed key has no name and no plan. @type {List<MonthPage, MonthKey>} */
export const monthList = {
  columns: {
    id: { title: 'Key', value: ({ id }) => id, terminal: { cutsTo: 12 } },
    plan: { title: 'Plan', value: ({ plan }) => plan, missing: '(removed)', terminal: { cutsTo: 10 } },
    offered: { title: 'Offered', kind: 'count', value: ({ offered }) => offered },
    before: { title: 'Before', kind: 'count', isOptional: true, value: ({ before }) => before },
    change: {
      title: 'Change',
      isOptional: true,
      value({ offered, before, isOver = true }) {
        if (before === undefined) return undefined;
        return isOver ? changeInWords(offered, before) : 'not over';
      },
    },
    admitted: { title: 'Admitted', kind: 'count', value: ({ admitted }) => admitted },
    refused: { title: 'Refused', kind: 'count', value: ({ offered, admitted }) => offered - admitted },
    units: { title: 'Units', kind: 'count', value: ({ admitted, units = admitted }) => units },
    shown_units: { title: 'Units', kind: 'count', isOptional: true, value: ({ shownUnits }) => shownUnits },
    name: { title: 'Name', value: ({ name }) => name, terminal: { cutsTo: 12 } },
  },
  onTerminal: [
    ...['id', 'plan', 'offered', 'before', 'change'],
    ...['admitted', 'shown_units', 'refused', 'name'],
  ],
  onPage: ['id', 'plan', 'offered', 'admitted', 'shown_units', 'refused'],
  inCsv: ['id', 'name', 'plan', 'offered', 'admitted', 'refused', 'units'],
  rows({ keys }) {
    if (keys.every(({ units }) => units === undefined)) return keys;
    return keys.map((key) => ({ ...key, shownUnits: key.units ?? key.admitted }));
  },
  idOf: ({ id }) => id,
  empty: () => ({ parts: ['There is no key.'] }),
};

/** For a month without a request: the record may begin later. @param {Pick<MonthPage, 'month'>} page */
export function emptyMonthText({ month }) {
  return `The record has no request of ${month}.`;
}

/**
 * What the figures of a month lack: requests while Redis is away, the beginning of the month, or its end.
 *
 * @param {Pick<MonthPage, 'month' | 'fromAt' | 'toAt' | 'missing'>} page
 * @returns {string | undefined}
 */
export function monthNotice({ month, fromAt, toAt, missing }) {
  if (missing !== undefined)
    return `The requests of ${month} that this gateway does not know are missing, so do not bill these figures.`;
  if (!fromAt.startsWith(`${month}-01T00:00`))
    return `The record of ${month} begins ${utcSecond(fromAt)} UTC.`;
  return toAt.startsWith(month)
    ? `${month} is not over: these are its requests until ${utcSecond(toAt)} UTC.`
    : undefined;
}
