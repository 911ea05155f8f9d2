import { instant } from '../../../cli/output/figures.ts';
import { counted, figure } from '../../../shared/words/figures.js';
import type { KeyFacts } from '../../interfaces/commands.ts';
import type { CreditShown } from '../credit-shape.ts';

export const creditFacts: KeyFacts = ({ credits = [] }) =>
  credits.map((credit) => ['given back', creditText(credit)]);

/** Describes a credit: "12 units of the day and 12 of the month at 2026-11-26 10:30 UTC, for failures from … to …". */
function creditText({ at, from, to, givenBack: { day, month } }: CreditShown): string {
  const minute = (text: string) => instant(text).slice(0, 16);
  return `${counted(day, 'unit')} of the day and ${figure(month)} of the month at ${minute(at)} UTC, for requests that failed from ${minute(from)} to ${minute(to)}`;
}
