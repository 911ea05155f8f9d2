import {
  changeText,
  type ListDiff,
  type SettingsDiff,
  settingLists,
} from '../../admin/settings/diff-settings.ts';
import type { EditNote } from '../../capabilities/interfaces/commands.ts';
import { cutText, wrapText } from '../../shared/terminal/text-width.ts';
import { figure } from '../../shared/words/figures.js';
import type { Screen, Tone } from '../output/screen.ts';

export interface ConfigurationDiff extends SettingsDiff {
  readonly before: string;
  readonly after: string;
  /** Changed settings that need a restart. */
  readonly needsRestart: readonly string[];
}

/** The maximum number of names in a list. Further names are only counted. */
const namesShown = 20;

/** The lists in the order of the output: plans come first. */
const { plans: ofPlans, ...otherLists } = settingLists;
const none: ListDiff = { added: [], removed: [], changed: [] };
const listsShown = Object.entries({ plans: ofPlans, ...otherLists });

/** A note about a change is below its line. */
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
      const ofItem = notes.filter((note) => note.noun === noun && note.id === one.id);
      const of = (member: string) => ofItem.filter((note) => note.member === member);
      const ofMembers = one.changes.flatMap(({ member }) => of(member));
      return [
        line('warning', `~ ${noun} ${one.id}`),
        ...one.changes.flatMap((change) => [
          cutText(`    ${changeText(change)}`, columns),
          ...noteLines(of(change.member), screen),
        ]),
        ...noteLines(
          ofItem.filter((note) => !ofMembers.includes(note)),
          screen,
        ),
      ];
    }),
  ];
  const isListed = (plan: string) =>
    diff.lists.plans.changed.slice(0, namesShown).some(({ id }) => id === plan);
  const restart = `These changes need a restart of the gateway: ${diff.needsRestart.join(', ')}.`;
  return [
    cutText(`${before} (${diff.before}) → ${after} (${diff.after})`, columns),
    ...listsShown.flatMap(([list, { noun }]) => listLines(diff.lists[list] ?? none, noun)),
    ...noteLines(
      notes.filter(({ warning, id }) => warning && !isListed(id)),
      screen,
    ),
    ...diff.settings.map((change) => line('warning', `~ ${changeText(change)}`)),
    ...(diff.needsRestart.length === 0 ? [] : wrapText(restart, columns).map((text) => paint('bad', text))),
  ];
}

function noteLines(notes: readonly EditNote[], screen: Screen): readonly string[] {
  return notes.flatMap((note) => note.lines(screen).map((text) => `      ${text}`));
}

function short<Item>(items: readonly Item[]): readonly (Item | string)[] {
  if (items.length <= namesShown) return items;
  return [...items.slice(0, namesShown), `… and ${figure(items.length - namesShown)} more`];
}
