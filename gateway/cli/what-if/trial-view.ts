import type { PlanTrial } from '../../admin/wires/plans/figures.ts';
import { trialKeys } from '../../admin/words/trial-keys.js';
import { toLimits } from '../../keys/limits/limit-fields.ts';
import { limitsText } from '../../keys/limits/limit-texts.ts';
import { oneLine, wrapText } from '../../shared/terminal/text-width.ts';
import { counted, figure } from '../../shared/words/figures.js';
import { instant } from '../output/figures.ts';
import { listTable } from '../output/list.ts';
import type { Screen } from '../output/screen.ts';

export function trialsLines(trials: readonly PlanTrial[], screen: Screen, nowMs: number): string[] {
  if (trials.length === 0) return [noTrial];
  return trials.flatMap((trial, index) => [
    ...(index === 0 ? [] : ['']),
    ...trialLines(trial, screen, nowMs),
  ]);
}

const noTrial =
  'No plan has a trial. To try other limits on a plan, write `trial: { perMinute: 40 }` in the plan, with all limits of the trial.';

export function trialLines(found: PlanTrial, screen: Screen, nowMs: number): string[] {
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
    ...(keys.length === 0 ? [] : listTable(trialKeys, keys, screen, nowMs)),
    ...(more === 0 ? [] : [`and ${counted(more, 'key')} more: --limit N shows up to 10,000`]),
  ];
}

/** `2026-11-22 10:31` */
function minuteText(at: string): string {
  return instant(at).slice(0, 16);
}
