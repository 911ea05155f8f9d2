import { aboutPlan, exampleKey, type ListedKinds, webhook } from '../../fleet/kinds/kind.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { percentText } from '../../shared/words/figures.js';
import type { LimitsChange, LimitsChangeKind } from '../interfaces/events.ts';
import { type PlanRetried, type PlanReverted, retryText, revertText } from './revert-text.ts';

export const guardKinds: ListedKinds<PlanReverted | PlanRetried> = {
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
      when: {
        'plan.reverted': 'The guard of a plan has returned the plan to its limits from before an edit.',
      },
      data: (z) => ({
        plan: z.string(),
        sinceAt: z.iso.datetime(),
        requests: z
          .int()
          .describe('The requests that the guard counted in the ten minutes before `sinceAt`.'),
        refused: z.int().describe('The refusals of these requests.'),
        refusedAtMost: z.string(),
        edit: z.record(z.string(), z.unknown()).describe('The limits of the edit.'),
        inForce: z
          .record(z.string(), z.unknown())
          .describe('The limits from before the edit, which apply now.'),
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

export const guardChanges = {
  'plan.reverted': {
    text({ plan, before: edit, after: inForce, figures }) {
      const { requests = 0, refused = 0 } = figures ?? {};
      return revertText({ plan, requests, refused, edit, inForce });
    },
    identity: ({ action, plan, figures }) => [action, plan, figures?.sinceAt],
    words: {
      action: '`plan.reverted`: by a guard. `plan.retried`: a revert was ended.',
      by: '`guard` for a revert',
    },
  },
  'plan.retried': { text: retryText },
} satisfies Readonly<Record<string, LimitsChangeKind>>;

/** The fault of a reverted plan. */
export const guardFaults = ['plan_reverted'] as const;

export function revertChange({
  plan,
  edit: before,
  inForce: after,
  sinceMs,
  requests,
  refused,
}: Omit<PlanReverted, 'kind'>) {
  const figures = { requests, refused, sinceAt: new Date(sinceMs).toISOString() };
  return { ...limitsChange('plan.reverted', { by: 'guard', plan, before, after }), figures };
}

export function retryChange({ by, ranBy, plan, before, after }: Omit<PlanRetried, 'kind'>) {
  return limitsChange('plan.retried', { by, ranBy, plan, before, after });
}

function limitsChange<Action extends keyof typeof guardChanges>(
  action: Action,
  change: Pick<LimitsChange, 'by' | 'ranBy' | 'plan' | 'before' | 'after'>,
) {
  return { action, ...change, limitsBefore: { plans: { [change.plan]: change.before } } };
}
