import { listPlansWire } from '../../../admin/wires/plans/plans.ts';
import { progressHere } from '../../../cli/output/progress.ts';
import { tellMissing } from '../../../cli/output/show.ts';
import { dateText, isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import { dayMs } from '../../../shared/words/figures.js';
import type { ConfigurationEdit, EditNote, EditNotes } from '../../interfaces/commands.ts';
import { createAskSimulation } from './ask-simulation.ts';
import { editsBetween, type LimitEdits, laterEdits } from './edits-between.ts';
import { notReplayedText } from './simulation-view.ts';
import { type LimitVerdict, verdictDays, verdictsOf, verdictText } from './verdicts.ts';

const replayed = new WeakMap<ConfigurationEdit, Promise<readonly LimitVerdict[]>>();

/** Replays the recorded requests under the edited limits, once for each edit. Undefined if the edit is not replayed. */
export function verdictsOn(edit: ConfigurationEdit): Promise<readonly LimitVerdict[]> | undefined {
  const known = replayed.get(edit);
  if (known !== undefined || edit.replayed === undefined) return known;
  const { before, after, client } = edit.replayed;
  const ask = createAskSimulation(client, progressHere);
  const from = isoOf(edit.nowMs - verdictDays * dayMs);
  let isTold = false;
  const askFrom = async (edits: LimitEdits) => {
    const found = await ask({ from, ...edits });
    // All simulations of an edit lack the same.
    if (!isTold) tellMissing(found);
    isTold = true;
    return found;
  };
  // The settings have no keys of the key directory.
  const verdicts = client
    .ask(listPlansWire)
    .then(({ body }) =>
      verdictsOf(
        editsBetween(before, after),
        askFrom,
        (plan) => body.plans.find(({ name }) => name === plan)?.keys ?? 0,
        laterEdits(before, after, edit.nowMs),
      ),
    );
  replayed.set(edit, verdicts);
  return verdicts;
}

/** The effect that the edited limits would have had on the recorded requests. */
export const simulatedNotes: EditNotes = async (edit) => {
  const verdicts = (await verdictsOn(edit)) ?? [];
  return { members: { verdicts }, notes: verdicts.map(noteOf) };
};

function noteOf(verdict: LimitVerdict): EditNote {
  const { plan, key = '', window, from, notReplayed = [], isLeftOut } = verdict;
  const together = window === undefined && plan !== undefined ? 'together: ' : '';
  const which = from === undefined ? together : `from ${dateText(from)}: `;
  const texts = isLeftOut ? [] : [`→ ${which}${verdictText(verdict)}`];
  return {
    ...(plan === undefined ? { noun: 'key', id: key } : { noun: 'plan', id: plan }),
    member: window && `limits.${window}`,
    lines: ({ columns }) => [
      ...texts.flatMap((text) => wrapText(text, columns - 6)),
      ...notReplayed.flatMap((group) => [
        ...wrapText(`→ ${notReplayedText(group)}`, columns - 6),
        ...(group.trial === undefined ? [] : [`  ${group.trial}`]),
      ]),
    ],
  };
}
