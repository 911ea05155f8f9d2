import {
  changeText,
  type ListDiff,
  type SettingsDiff,
  settingLists,
} from '../../admin/settings/diff-settings.ts';
import type { EditNote } from '../../capabilities/interfaces/commands.ts';
import { dateText } from '../../shared/schema/dates-and-durations.ts';
import { cutText, wrapText } from '../../shared/terminal/text-width.ts';
import { figure } from '../../shared/words/figures.js';
import type { Screen, Tone } from '../output/screen.ts';
import { type LimitVerdict, verdictText } from './diff-verdicts.ts';
import { notReplayedText } from './simulation-view.ts';

/** The difference between two configurations, with their versions. */
export interface ConfigurationDiff extends SettingsDiff {
  readonly before: string;
  readonly after: string;
  /** Changed settings that need a restart. */
  readonly needsRestart: readonly string[];
  readonly verdicts: readonly LimitVerdict[];
}

/** The maximum number of names in a list. Further names are only counted. */
const namesShown = 20;

/** The lists in the order of the output: plans come first. */
const { plans: ofPlans, ...otherLists } = settingLists;
const none: ListDiff = { added: [], removed: [], changed: [] };
const listsShown = Object.entries({ plans: ofPlans, ...otherLists });

/**
 * Makes the lines about the additions, removals and changes of an edit. The simulated effect of a changed limit is below the line with the
 * limit.
 */
export function diffLines(
  diff: ConfigurationDiff,
  notes: readonly EditNote[],
  [before, after]: readonly [before: string, after: string],
  screen: Screen,
): string[] {
  const { columns, paint } = screen;
  const line = (tone: Tone, text: string) => paint(tone, cutText(text, columns));
  const listLines = ({ added, removed, changed }: ListDiff, noun: string) => [
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
        ...notes
          .filter(({ plan }) => noun === 'plan' && plan === one.id)
          .flatMap((note) => noteLines(note, screen)),
      ];
    }),
  ];
  const restart = `These changes need a restart of the gateway: ${diff.needsRestart.join(', ')}.`;
  return [
    cutText(`${before} (${diff.before}) → ${after} (${diff.after})`, columns),
    ...listsShown.flatMap(([list, { noun }]) => listLines(diff.lists[list] ?? none, noun)),
    ...notes
      .filter(({ plan }) => !diff.lists.plans.changed.slice(0, namesShown).some(({ id }) => id === plan))
      .flatMap((note) => noteLines(note, screen)),
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

/** Makes the lines of a note. A proposal is one line, which the operator can copy. */
function noteLines({ warning, advice, proposal }: EditNote, { columns, paint }: Screen): string[] {
  const lines = wrapText(`! ${warning}. ${advice}`, columns - 6).map((text) => paint('bad', `      ${text}`));
  return proposal === undefined ? lines : [...lines, `        ${proposal}`];
}

function short<Item>(items: readonly Item[]): readonly (Item | string)[] {
  if (items.length <= namesShown) return items;
  return [...items.slice(0, namesShown), `… and ${figure(items.length - namesShown)} more`];
}
