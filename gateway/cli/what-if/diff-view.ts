import type { UnguardedPlan } from '../../admin/plans/unguarded-plans.ts';
import {
  changeText,
  dateText,
  type ListDiff,
  type SettingsDiff,
} from '../../admin/settings/diff-settings.ts';
import { cutText, wrapText } from '../../shared/terminal/text-width.ts';
import { figure } from '../../shared/words/figures.js';
import type { Screen, Tone } from '../output/screen.ts';
import { hasUnknownShare, type LimitVerdict, verdictText } from './diff-verdicts.ts';
import { notReplayedText } from './simulation-view.ts';

/** The difference between two configurations, with their versions. */
export interface ConfigurationDiff extends SettingsDiff {
  readonly before: string;
  readonly after: string;
  /** Changed settings that need a restart. */
  readonly needsRestart: readonly string[];
  readonly verdicts: readonly LimitVerdict[];
  /** The plans that become smaller without a suitable guard. */
  readonly unguarded: readonly UnguardedPlan[];
}

/** The maximum number of names in a list. Further names are only counted. */
const namesShown = 20;

const nouns = [
  ['plans', 'plan'],
  ['keys', 'key'],
  ['operations', 'operation'],
  ['upstreams', 'upstream'],
  ['notify', 'receiver'],
] as const;

/**
 * Makes the lines about the additions, removals and changes of an edit. The simulated effect of a changed limit is below the line with the
 * limit.
 */
export function diffLines(
  diff: ConfigurationDiff,
  [before, after]: readonly [before: string, after: string],
  screen: Screen,
): string[] {
  const { columns, paint } = screen;
  const line = (tone: Tone, text: string) => paint(tone, cutText(text, columns));
  const listLines = ({ added, removed, changed }: ListDiff, noun: (typeof nouns)[number][1]) => [
    ...short(added).map((id) => line('good', `+ ${noun} ${id}`)),
    ...short(removed).map((id) => line('bad', `- ${noun} ${id}`)),
    ...short(changed).flatMap((one) => {
      if (typeof one === 'string') return [line('warning', `~ ${noun} ${one}`)];
      const isAbout = (verdict: LimitVerdict) =>
        (noun === 'plan' || noun === 'key') && verdict[noun] === one.id;
      const verdicts = diff.verdicts.filter(isAbout);
      const ofLimit = (member: string) => verdicts.filter(({ window }) => member === `limits.${window}`);
      const ofLimits = one.changes.flatMap(({ member }) => ofLimit(member));
      return [
        line('warning', `~ ${noun} ${one.id}`),
        ...one.changes.flatMap((change) => [
          cutText(`    ${changeText(change)}`, columns),
          ...verdictLines(ofLimit(change.member), columns),
        ]),
        ...verdictLines(
          verdicts.filter((verdict) => !ofLimits.includes(verdict)),
          columns,
        ),
        ...diff.unguarded
          .filter(({ plan }) => noun === 'plan' && plan === one.id)
          .flatMap((unguarded) => guardLines(unguarded, diff.verdicts, screen)),
      ];
    }),
  ];
  const restart = `These changes need a restart of the gateway: ${diff.needsRestart.join(', ')}.`;
  return [
    cutText(`${before} (${diff.before}) → ${after} (${diff.after})`, columns),
    ...nouns.flatMap(([list, noun]) => listLines(diff[list], noun)),
    ...diff.unguarded
      .filter(({ plan }) => !diff.plans.changed.slice(0, namesShown).some(({ id }) => id === plan))
      .flatMap((unguarded) => guardLines(unguarded, diff.verdicts, screen)),
    ...diff.settings.map((change) => line('warning', `~ ${changeText(change)}`)),
    ...(diff.needsRestart.length === 0 ? [] : wrapText(restart, columns).map((text) => paint('bad', text))),
  ];
}

function verdictLines(verdicts: readonly LimitVerdict[], columns: number): string[] {
  return verdicts.flatMap((verdict) => {
    const { window, plan, from } = verdict;
    const together = window === undefined && plan !== undefined ? 'together: ' : '';
    const which = from === undefined ? together : `from ${dateText(from)}: `;
    const { notReplayed = [], isLeftOut } = verdict;
    const texts = isLeftOut ? [] : [`→ ${which}${verdictText(verdict)}`];
    return [
      ...texts.flatMap((text) => wrapText(text, columns - 6)),
      ...notReplayed.flatMap((group) => [
        ...wrapText(`→ ${notReplayedText(group)}`, columns - 6),
        ...(group.trial === undefined ? [] : [`  ${group.trial}`]),
      ]),
    ].map((text) => `      ${text}`);
  });
}

/** Makes the lines that warn of a missing guard. The proposed guard is one line, which the operator can copy. */
function guardLines(
  { plan, warning, guard }: UnguardedPlan,
  verdicts: readonly LimitVerdict[],
  { columns, paint }: Screen,
): string[] {
  const without = hasUnknownShare(verdicts, plan)
    ? '. The share for a guard of the group is not on record: try it first.'
    : '. A comparison with a running gateway proposes a guard.';
  const advice = guard === undefined ? without : '. Proposed, from the recorded requests:';
  const lines = wrapText(`! ${warning}${advice}`, columns - 6).map((text) => paint('bad', `      ${text}`));
  return guard === undefined ? lines : [...lines, `        ${guard}`];
}

function short<Item>(items: readonly Item[]): readonly (Item | string)[] {
  if (items.length <= namesShown) return items;
  return [...items.slice(0, namesShown), `… and ${figure(items.length - namesShown)} more`];
}
