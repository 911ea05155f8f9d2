import {
  changeText,
  type ListDiff,
  type lists,
  type SettingsDiff,
} from '../../admin/settings/diff-settings.ts';
import { cutText, wrapText } from '../../shared/terminal/text-width.ts';
import { figure } from '../output/figures.ts';
import type { Screen, Tone } from '../output/screen.ts';
import { type LimitVerdict, verdictText } from './diff-verdicts.ts';

/** The difference between two configurations, with their versions. */
export interface ConfigurationDiff extends SettingsDiff {
  readonly before: string;
  readonly after: string;
  /** Changed settings that need a restart. */
  readonly needsRestart: readonly string[];
}

/** The maximum number of names in a list; further names are counted. */
const namesShown = 20;

/** The additions, removals and changes of an edit, with the simulator's verdict under each changed limit. */
export function diffLines(
  diff: ConfigurationDiff,
  { names, verdicts }: { names: readonly [before: string, after: string]; verdicts: readonly LimitVerdict[] },
  screen: Screen,
): string[] {
  const { columns, paint } = screen;
  const [before, after] = names;
  const line = (tone: Tone, sign: string, text: string) => paint(tone, cutText(`${sign} ${text}`, columns));
  const ofList = (
    noun: string,
    { added, removed, changed }: ListDiff,
    verdictsOf: (id: string) => readonly LimitVerdict[],
  ) => [
    ...short(added).map((id) => line('good', '+', `${noun} ${id}`)),
    ...short(removed).map((id) => line('bad', '-', `${noun} ${id}`)),
    ...short(changed).flatMap((one) => {
      if (typeof one === 'string') return [line('warning', '~', `${noun} ${one}`)];
      const all = verdictsOf(one.id);
      return [
        line('warning', '~', `${noun} ${one.id}`),
        ...one.changes.flatMap((change) => [
          cutText(`    ${changeText(change)}`, columns),
          ...said(all.filter(({ window }) => change.member === `limits.${window}`)),
        ]),
        ...said(all.filter(({ window }) => !one.changes.some(({ member }) => member === `limits.${window}`))),
      ];
    }),
  ];
  const said = (all: readonly LimitVerdict[]) =>
    all.flatMap((verdict) => {
      const together = verdict.window === undefined && verdict.plan !== undefined ? 'together: ' : '';
      return wrapText(`→ ${together}${verdictText(verdict)}`, columns - 6).map((text) => `      ${text}`);
    });
  const nouns = { keys: 'key', plans: 'plan', operations: 'operation', upstreams: 'upstream' } as const;
  const verdictsFor = {
    plans: (id: string) => verdicts.filter(({ plan }) => plan === id),
    keys: (id: string) => verdicts.filter(({ key }) => key === id),
    operations: () => [],
    upstreams: () => [],
  };
  return [
    cutText(`${before} (${diff.before}) → ${after} (${diff.after})`, columns),
    ...(
      ['plans', 'keys', 'operations', 'upstreams'] as const satisfies readonly (keyof typeof lists)[]
    ).flatMap((list) => ofList(nouns[list], diff[list], verdictsFor[list])),
    ...diff.settings.map((change) => line('warning', '~', changeText(change))),
    ...(diff.needsRestart.length === 0
      ? []
      : wrapText(
          `Takes effect only when the gateway is started again: ${diff.needsRestart.join(', ')}.`,
          columns,
        ).map((text) => paint('bad', text))),
  ];
}

function short<Item>(items: readonly Item[]): readonly (Item | string)[] {
  if (items.length <= namesShown) return items;
  return [...items.slice(0, namesShown), `… and ${figure(items.length - namesShown)} more`];
}
