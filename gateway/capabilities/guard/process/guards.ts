import { randomBytes } from 'node:crypto';
import { plansInForce } from '../../../keys/key-table.ts';
import { limitsAt } from '../../../keys/plans/plans.ts';
import type { RedisConnection } from '../../../redis/redis-connection.ts';
import { type Away, notConnected } from '../../../redis/redis-reply.ts';
import type { Keys, Plan, PlanFigures, PlanStates, Settings } from '../../../shared/model.ts';
import { joinNextRun } from '../../../shared/structures/join-next-run.ts';
import type { ObserveDecision } from '../../interfaces/request.ts';
import type { ProcessPart, ProcessSources } from '../../interfaces/running.ts';
import type { Revert, Reverts } from '../guard.ts';
import { type GuardedEdit, guardedEditOf } from '../guarded-edit.ts';
import { createActiveKeys } from './active-keys.ts';
import { firstState, type GuardFigures, type GuardState, isNewer, keysForRevert } from './decide-guard.ts';
import type { CountedRequest } from './guard-counts.ts';
import { createGuardStore, type GuardReply } from './guard-store.ts';
import { UnsentCounts } from './unsent-counts.ts';

export interface Guards extends ProcessPart {
  /** Calls the listener when a revert has begun or ended. @returns a function that removes the listener */
  onNews(listener: (news: readonly GuardNews[]) => void): () => void;
  /** Lets a reverted plan try its edit again, in all processes. */
  retry(plan: string): Promise<RetryOutcome>;
}

type GuardCounter = (request: CountedRequest) => void;

/** A change of a guard's state that this process has received. */
interface GuardNews {
  readonly edit: GuardedEdit;
  /** The revert; undefined if an operator has ended it. */
  readonly revert: Revert | undefined;
  /** False if the plan was reverted before this process first read the state. Other processes have then reported the revert. */
  readonly isNew: boolean;
}

type RetryOutcome =
  | { readonly kind: 'retried'; readonly edit: GuardedEdit; readonly revert: Revert | undefined }
  | { readonly kind: 'not_reverted' | 'no_guard' }
  | Away;

/** A guarded edit of the configuration, with its unsent counts and its known state. */
interface Watch {
  readonly edit: GuardedEdit;
  readonly unsent: UnsentCounts;
  state: GuardState;
  /** The figures of the last ten minutes; undefined before the first reply of the store. */
  figures: GuardFigures | undefined;
}

/**
 * Opens the guards of a process. Without Redis there are none. If an edit adds `redis` and a guard to a running gateway, the guard begins at
 * the next start.
 */
export function createGuards({ redis, ...sources }: ProcessSources): Guards {
  if (redis !== undefined) return openGuards({ redis, ...sources });
  return { onNews: () => () => {}, retry: async () => ({ kind: 'no_guard' }) };
}

/**
 * Watches the guarded edits of the configuration. Each process counts the requests of each guarded plan. Once a second it reports the counts
 * to the store, where one script decides for all processes (`decide-guard.lua`), and receives the state of the guard in the reply. A process
 * remembers each revert. If Redis has lost a revert, by a failover for example, the next report restores it.
 *
 * While Redis is unavailable, no process decides. The counts wait until Redis is back. Without a guard in the configuration, a process only
 * notes which keys are active (`active-keys.ts`).
 */
function openGuards({
  redis,
  settings,
  nowMs,
  log,
  bounds,
}: ProcessSources & { readonly redis: RedisConnection }): Guards {
  const processId = randomBytes(6).toString('hex');
  const store = createGuardStore({ redis, processId, bounds });
  const active = createActiveKeys({ redis, bounds });
  const watches = new Map<string, Watch>();
  const listeners = new Set<(news: readonly GuardNews[]) => void>();
  let reverts: Reverts = new Map();
  let counted: { readonly of: Keys; readonly byPlan: ReadonlyMap<string, number> } | undefined;
  const warned = new Set<string>();
  const report = joinNextRun(reportOnce);
  const timer = setInterval(() => void report(), bounds.guardIntervalMs).unref();
  store.onReturn(() => void report());
  const started = edits().length === 0 ? Promise.resolve() : store.started.then(report);

  return {
    /** Resolves after the first attempt to read the states of the guards. A process serves no request before this attempt. */
    started,
    planStates: (): PlanStates | undefined => (reverts.size === 0 ? undefined : { reverts }),
    onPlanStates: (listener: () => void) => listen(listener),
    /**
     * The figures of the last ten minutes of each plan with a watched window, by the name of the plan. The figures are zero before the first
     * reply of the store.
     */
    planFigures: (): ReadonlyMap<string, PlanFigures> =>
      new Map(
        edits().map(({ plan, identity }) => [
          plan,
          { watched: watches.get(identity)?.figures ?? { requests: 0, refused: 0 } },
        ]),
      ),
    hooks: (settings: Settings) => ({ observeDecision: [observerOf(settings)] }),
    reloaded: () => void report(),
    onNews: listen,
    async retry(plan: string): Promise<RetryOutcome> {
      const edit = edits().find((one) => one.plan === plan);
      if (edit === undefined) return { kind: 'no_guard' };
      const watch = watchOf(edit);
      const { revert } = watch.state;
      const reply = await store.retry(edit, watch.state);
      if (reply.kind === 'away') return reply;
      tell(take(watch, reply));
      return reply.hasChanged ? { kind: 'retried', edit, revert } : { kind: 'not_reverted' };
    },
    async flush() {
      clearInterval(timer);
      await report();
    },
  };

  /**
   * Counts the decisions about requests of plans with limits: notes the active keys of a plan, and counts the requests that a guard watches. A
   * reverted plan has nothing to watch.
   */
  function observerOf(settings: Settings): ObserveDecision {
    const plans = [...plansInForce(settings).values()].filter(({ isCustom }) => !isCustom);
    const counters = new Map(plans.map((plan) => [plan.name, counterOf(plan)]));
    return ({ key, decision, offered }, units) =>
      counters.get(key.plan)?.({ keyId: key.id, decision, units, operation: offered?.operation.id });
  }

  function listen(listener: (news: readonly GuardNews[]) => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  function counterOf(plan: Plan): GuardCounter {
    const edit = plan.reverted === undefined ? guardedEditOf(plan, plan.limits) : undefined;
    return (request) => {
      const { keyId, decision } = request;
      const { kind, rateLimit } = decision;
      const isDecided = kind === 'admitted' ? decision.units > 0 : kind === 'refused';
      if (isDecided) active.note(plan.name, keyId, rateLimit.nowMs);
      // A report may have removed the watch, because the clocks of the snapshot and of the report differ around a scheduled change.
      if (edit !== undefined) watchOf(edit).unsent.count(request);
    };
  }

  function edits(): readonly GuardedEdit[] {
    const atMs = nowMs();
    return [...settings().plans.values()].flatMap((plan) => guardedEditOf(plan, limitsAt(plan, atMs)) ?? []);
  }

  function watchOf(edit: GuardedEdit): Watch {
    const known = watches.get(edit.identity);
    if (known !== undefined) return known;
    const unsent = new UnsentCounts(edit, performance.now(), bounds);
    const watch: Watch = { edit, unsent, state: firstState, figures: undefined };
    watches.set(edit.identity, watch);
    return watch;
  }

  async function reportOnce(): Promise<void> {
    const configured = edits();
    const identities = new Set(configured.map(({ identity }) => identity));
    const ended = [...watches.keys()].filter((identity) => !identities.has(identity));
    for (const identity of ended) watches.delete(identity);
    const activeKeys = await active.count(
      configured.map(({ plan }) => plan),
      nowMs(),
    );
    const keys = configured.length === 0 ? undefined : keysOfPlans();
    const replies = await Promise.all(
      store.together(() =>
        configured.map(async (edit) => {
          const watch = watchOf(edit);
          const counted = watch.unsent.report(performance.now());
          const keysMin = keysForRevert(keys?.get(edit.plan) ?? 0, activeKeys.get(edit.plan) ?? 0);
          const reply = await store.report(edit, { known: watch.state, keysMin, ...counted });
          note(edit, reply);
          if (reply.kind === 'away') return [];
          watch.unsent.confirm(counted.number);
          return take(watch, reply);
        }),
      ),
    );
    tell(replies.flat());
  }

  /** Counts the usable keys of the configuration by plan. */
  function keysOfPlans(): ReadonlyMap<string, number> {
    const { keys } = settings();
    if (counted?.of === keys) return counted.byPlan;
    const byPlan = new Map<string, number>();
    keys.tally((plan, isDisabled, lastEndMs) => {
      if (!isDisabled && lastEndMs > nowMs()) byPlan.set(plan, (byPlan.get(plan) ?? 0) + 1);
    });
    counted = { of: keys, byPlan };
    return byPlan;
  }

  /** Stores the state of a reply. An older state is ignored, because replies may arrive in another order. */
  function take(watch: Watch, { state, figures, hasChanged }: GuardReply): readonly GuardNews[] {
    const before = watch.state;
    const isNew = hasChanged || watch.figures !== undefined;
    if (isNewer(before, state)) return [];
    watch.figures = figures;
    watch.state = state;
    if (isNewer(state, before)) watch.unsent.clear();
    const { edit } = watch;
    if (state.revert?.sinceMs === before.revert?.sinceMs) return [];
    return [{ edit, revert: state.revert, isNew }];
  }

  /** Renews the map of reverts, and calls the listeners if a revert has begun or ended. */
  function tell(news: readonly GuardNews[]): void {
    const reverted = [...watches].flatMap(([identity, { state }]): [string, Revert][] =>
      state.revert === undefined ? [] : [[identity, state.revert]],
    );
    const isSame =
      reverted.length === reverts.size &&
      reverted.every(([identity, { sinceMs }]) => reverts.get(identity)?.sinceMs === sinceMs);
    if (isSame && news.length === 0) return;
    reverts = new Map(reverted);
    for (const listener of listeners) listener(news);
  }

  /** Warns once about each plan if Redis refuses the script of its guard. An unavailable Redis is logged elsewhere. */
  function note({ plan }: GuardedEdit, reply: GuardReply | Away): void {
    if (reply.kind !== 'away' || reply.mayHaveRun || reply === notConnected || warned.has(plan)) return;
    warned.add(plan);
    log.warn({ plan, reason: reply.reason }, 'Redis refuses the script that decides for the guard of a plan');
  }
}
