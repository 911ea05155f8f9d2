import { hasUnrecordedGroup } from '../../../cli/what-if/diff-verdicts.ts';
import type { EditNotes } from '../../interfaces/commands.ts';
import { unguardedPlans } from './unguarded-plans.ts';

/** Warns of plans that an edit makes smaller without a suitable guard, and proposes a guard from the simulated edit. */
export const guardNotes: EditNotes = ({ before, after, nowMs, verdicts }) => {
  const isUnknown = (plan: string) => hasUnrecordedGroup(verdicts ?? [], plan);
  const unguarded = unguardedPlans(before, after, nowMs, (plan, from) => {
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
        : 'A comparison with a running gateway proposes a guard.';
      const advice = guard === undefined ? without : 'Proposed, from the recorded requests:';
      return { plan, warning, advice, proposal: guard, diffProposes: 'a guard' };
    }),
  };
};
