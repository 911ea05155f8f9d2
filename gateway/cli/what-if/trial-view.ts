import type { PlanTrial } from '../../admin/wires/plans.ts';
import { limitsText } from '../../fleet/wording.ts';
import { toLimits } from '../../keys/limit-fields.ts';
import { oneLine, wrapText } from '../../shared/terminal/text-width.ts';
import { counted, figure, percent } from '../../shared/words/figures.js';
import { refusedInWords } from '../admin/usage-view.ts';
import { instant } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { type Column, table } from '../output/table.ts';

/** Makes the lines about the trials of several plans. */
export function trialsLines(trials: readonly PlanTrial[], screen: Screen): string[] {
  if (trials.length === 0) return [noTrial];
  return trials.flatMap((trial, index) => [...(index === 0 ? [] : ['']), ...trialLines(trial, screen)]);
}

const noTrial =
  'No plan has a trial. To try other limits on a plan, write `trial: { perMinute: 40 }` in the plan, with all limits of the trial.';

/** Makes the lines about the trial of a plan: the sum of its decisions, and the keys that it would have refused. */
export function trialLines(found: PlanTrial, screen: Screen): string[] {
  const { plan, limitsNow, fromAt, toAt, firstAt, sentence, keys, more = 0 } = found;
  const period = `from ${minuteText(fromAt)} to ${minuteText(toAt)} UTC`;
  const title = `${oneLine(plan)} (${limitsText(toLimits(limitsNow))}), ${period}`;
  const rest = [
    sentence,
    firstAt === undefined ? '' : `The trial decided its first request at ${minuteText(firstAt)} UTC.`,
    found.examinedKeys < found.activeKeys
      ? `Only the ${figure(found.examinedKeys)} most recently active of ${counted(found.activeKeys, 'key')} are counted.`
      : '',
  ];
  return [
    ...wrapText(title, screen.columns).map((line) => screen.paint('title', line)),
    ...wrapText(rest.filter(Boolean).join(' '), screen.columns),
    ...(keys.length === 0 ? [] : table(columns, keys, screen)),
    ...(more === 0 ? [] : [`and ${counted(more, 'key')} more: --limit N shows up to 10,000`]),
  ];
}

type RefusedKey = PlanTrial['keys'][number];

const columns: readonly Column<RefusedKey>[] = [
  { title: 'KEY', cell: ({ id }) => id, cutsTo: 12 },
  { title: 'REQUESTS', cell: ({ requests }) => requests },
  { title: 'REFUSED NOW', cell: ({ refusedNow }) => refusedNow },
  {
    title: 'BY THE TRIAL',
    align: 'right',
    cell: ({ refused, refusedNow }) => ({
      text: figure(refused),
      tone: refused > refusedNow ? 'bad' : 'good',
    }),
  },
  { title: 'SHARE', align: 'right', cell: ({ refused, requests }) => percent(refused / requests) },
  { title: 'FIRST (UTC)', cell: ({ firstRefusedAt }) => firstRefusedAt && minuteText(firstRefusedAt) },
  { title: 'LAST (UTC)', cell: ({ lastRefusedAt }) => lastRefusedAt && minuteText(lastRefusedAt) },
  { title: 'REFUSED BY', cell: refusedByWords, cutsTo: 10 },
  { title: 'NAME', cell: ({ name }) => name, cutsTo: 4 },
];

function refusedByWords({ refusedBy: { banned = 0, ...refused } }: RefusedKey): string {
  return refusedInWords({ refused, banned });
}

/** `2026-11-22 10:31` */
function minuteText(at: string): string {
  return instant(at).slice(0, 16);
}
