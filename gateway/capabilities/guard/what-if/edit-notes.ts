import { wrapText } from '../../../shared/terminal/text-width.ts';
import type { EditNotes } from '../../interfaces/commands.ts';
import { verdictsOn } from '../../simulate/commands/edit-notes.ts';
import { hasUnrecordedGroup } from '../../simulate/commands/verdicts.ts';
import { unguardedPlans } from './unguarded-plans.ts';

/** Warns of plans that an edit makes smaller without a suitable guard, and proposes a guard from the replayed edit. A plan of a configuration without Redis can have no guard. */
export const guardNotes: EditNotes = async (edit) => {
  const { plans, hasRedis, nowMs } = edit;
  if (!hasRedis) return { members: { unguarded: [] }, notes: [] };
  const verdicts = await verdictsOn(edit);
  const isUnknown = (plan: string) => hasUnrecordedGroup(verdicts ?? [], plan);
  const unguarded = unguardedPlans(plans.before, plans.after, nowMs, (plan, from) => {
    if (verdicts === undefined || isUnknown(plan)) return undefined;
    const ofEdit = verdicts.filter((verdict) => verdict.plan === plan && verdict.from === from);
    // The share is 0 if no key of the plan sent requests.
    return ofEdit.find(({ guardShare }) => guardShare !== undefined)?.guardShare ?? 0;
  });
  return {
    members: { unguarded },
    notes: unguarded.map(({ plan, warning, guard }) => {
      const without = isUnknown(plan)
        ? 'The share for a guard of the group is not on record: try it first.'
        : verdicts === undefined
          ? 'A comparison with a running gateway proposes a guard.'
          : 'No guard is proposed, because the new limits would have refused most requests of ten minutes on record.';
      const advice = guard === undefined ? without : 'Proposed, from the recorded requests:';
      return {
        noun: 'plan',
        id: plan,
        lines: ({ columns, paint }) => [
          ...wrapText(`! ${warning}. ${advice}`, columns - 6).map((text) => paint('bad', text)),
          // The proposal is one line, which the operator can copy.
          ...(guard === undefined ? [] : [`  ${guard}`]),
        ],
        warning: (file) => `${warning}; "tollgate diff ${file}" proposes a guard`,
      };
    }),
  };
};
