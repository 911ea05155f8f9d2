import { aboutPlan, exampleKey, exampleVersions, type Kinds, webhook } from './kind.ts';

/** By a reload, or by a scheduled change. */
export interface PlanChanged {
  readonly kind: 'plan_changed';
  readonly plan: string;
  readonly cause: 'reload' | 'schedule';
  /** "60 → 50 a minute". */
  readonly edits: readonly string[];
  /** The same in all processes, and different for another change of the plan. */
  readonly version: string;
}

export const planKinds: Kinds<PlanChanged> = {
  plan_changed: {
    ...aboutPlan,
    text({ plan, cause, edits }) {
      const why = cause === 'schedule' ? ' at its date' : '';
      return `Plan ${plan} changed${why}: ${edits.join(', ')}.`;
    },
    identity({ plan, version, cause }) {
      const what = [plan, version];
      return cause === 'schedule'
        ? { kind: 'once', what }
        : { kind: 'near', what, within: 'changesMergedWithinMs' };
    },
    webhook: webhook({
      typeOf: () => 'plan.changed',
      when: { 'plan.changed': 'A reload has changed a plan, or limits have changed at their date.' },
      data: (z) => ({ plan: z.string(), cause: z.enum(['reload', 'schedule']), edits: z.array(z.string()) }),
      list: 'edits',
      members: ({ plan, cause, edits }) => ({ plan, cause, edits: [...edits] }),
      examples: () => [
        {
          kind: 'plan_changed',
          plan: exampleKey.plan,
          cause: 'reload',
          edits: ['60 → 50 a minute'],
          version: exampleVersions.after,
        },
      ],
    }),
  },
};
