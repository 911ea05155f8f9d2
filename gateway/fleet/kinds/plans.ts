import { percentText } from '../../keys/guards.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { type PlanRetried, type PlanReverted, retryText, revertText } from '../guard/revert-text.ts';
import { aboutPlan, exampleKey, exampleVersions, type Kinds, type ListedKinds, webhook } from './kind.ts';

/** A plan has other members than before: by a reload, or by a scheduled change. */
export interface PlanChanged {
  readonly kind: 'plan_changed';
  readonly plan: string;
  readonly cause: 'reload' | 'schedule';
  /** A text for each changed member: "60 → 50 a minute". */
  readonly edits: readonly string[];
  /** A text that is the same in all processes and different for another change of the plan. */
  readonly version: string;
}

export type GuardEvent = PlanReverted | PlanRetried;

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

export const guardKinds: ListedKinds<GuardEvent> = {
  plan_reverted: {
    ...aboutPlan,
    text: revertText,
    // Every process reports the revert. A process without a connection to Redis reports it later.
    identity: ({ plan, sinceMs }) => ({ kind: 'once', what: [plan, sinceMs] }),
    list: {
      group: 'incident',
      many: 'plans were reverted by their guards',
      entry: ({ plan }) => ({ plan }),
    },
    webhook: webhook({
      typeOf: () => 'plan.reverted',
      data: (z) => ({
        plan: z.string(),
        sinceAt: z.iso.datetime(),
        requests: z.int(),
        refused: z.int(),
        refusedAtMost: z.string(),
        edit: z.record(z.string(), z.unknown()),
        inForce: z.record(z.string(), z.unknown()),
      }),
      members({ plan, sinceMs, requests, refused, refusedShareMax, edit, inForce }) {
        const refusedAtMost = percentText(refusedShareMax);
        return { plan, sinceAt: isoOf(sinceMs), requests, refused, refusedAtMost, edit, inForce };
      },
      examples: (nowMs) => [
        {
          kind: 'plan_reverted',
          plan: exampleKey.plan,
          sinceMs: nowMs,
          requests: 4_100,
          refused: 132,
          refusedShareMax: 0.03,
          edit: { perMinute: 40 },
          inForce: { perMinute: 60 },
        },
      ],
    }),
  },
  plan_retried: {
    ...aboutPlan,
    text: retryText,
    // Only the process that received the command reports the retry.
    identity: () => ({ kind: 'own' }),
    list: { group: 'change', many: 'plans tried their edits again', entry: ({ plan }) => ({ plan }) },
  },
};
