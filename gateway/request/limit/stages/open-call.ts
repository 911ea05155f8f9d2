import type { QuotaCall } from '../../../quota/decide-key.ts';
import type { Concurrency } from '../../../quota/leases.ts';
import type { Run } from '../../../quota/runs.ts';
import type { Unsent } from '../../../quota/unsent.ts';
import type { Decision, Key, QuotaRules, StaleKey } from '../../../shared/model.ts';
import { type DecidedRun, decisionAt } from '../decision-at.ts';
import { rateLimitOn } from '../rate-limit-state.ts';

/** A call that requests of one key join until it is sent. */
export interface OpenCall extends QuotaCall {
  readonly key: Key;
  readonly rules: QuotaRules;
  readonly runs: OpenRun[];
  /** The number of requests in all runs. */
  size: number;
  /** Set when the call is sent, like `concurrency`. */
  unsent: Unsent | undefined;
  concurrency: Concurrency | undefined;
  readonly answer: PromiseWithResolvers<Answer>;
}

/** A run that further requests of the same cost and with the same groups join. */
export interface OpenRun extends Run {
  requests: number;
}

/** The common answer to all requests of a call. Each request takes its own decision from it. */
type Answer = { readonly kind: 'decided'; readonly runs: readonly DecidedRun[] } | Unavailable | StaleKey;

export type Unavailable = Extract<Decision, { kind: 'unavailable' }>;

/** Returns a call with one request, or without requests. */
export function openCall(key: Key, rules: QuotaRules, leaksReadMs: () => number, first?: OpenRun): OpenCall {
  return {
    keyId: key.id,
    limits: key.limits,
    trial: key.trial,
    bans: rules.bans,
    thresholds: rules.thresholds,
    runs: first === undefined ? [] : [first],
    changedMs: key.generation,
    leaksReadMs: leaksReadMsFor(key, leaksReadMs),
    unsent: undefined,
    concurrency: undefined,
    key,
    rules,
    size: first === undefined ? 0 : 1,
    answer: Promise.withResolvers<Answer>(),
  };
}

/** Whether a request can join a call. A reload between two requests of a turn may change the limits. */
export function canJoin(
  call: OpenCall,
  key: Key,
  { bans, thresholds }: QuotaRules,
  leaksReadMs: () => number,
): boolean {
  return (
    call.limits === key.limits &&
    call.trial === key.trial &&
    call.changedMs === key.generation &&
    call.leaksReadMs === leaksReadMsFor(key, leaksReadMs) &&
    call.bans === bans &&
    call.thresholds === thresholds &&
    call.key.concurrent === key.concurrent
  );
}

/**
 * A key of the configuration changes between two reloads only if one of its secrets leaks. The time is read when the request has just been
 * authenticated, so a call never contains a request that was authenticated before a leak and a request that was authenticated after it.
 */
function leaksReadMsFor({ generation }: Key, leaksReadMs: () => number): number | undefined {
  return generation === undefined ? leaksReadMs() || undefined : undefined;
}

/** Adds a request to a call. @param run the request */
export function join(call: OpenCall, run: OpenRun): void {
  const last = call.runs.at(-1);
  if (last !== undefined && isSameCharge(last, run)) last.requests += 1;
  else call.runs.push(run);
  call.size += 1;
}

/** Whether the requests of two runs cost the same and are charged in the same windows. */
export function isSameCharge(one: Run, other: Run): boolean {
  return (
    one.units === other.units && one.trialUnits === other.trialUnits && one.operation === other.operation
  );
}

/** Returns the decision on the last request of a call, once the call is answered. */
export function decisionOnLast({ runs, limits, answer }: OpenCall): Promise<Decision | StaleKey> {
  const at = runs.length - 1;
  const { requests, units, operation } = runs[at] as OpenRun;
  return answer.promise.then((all) => {
    if (all.kind === 'decided') return decisionAt(requests - 1, all.runs[at] as DecidedRun);
    if (all.kind !== 'unavailable') return all;
    return { ...all, units, rateLimit: rateLimitOn(all.rateLimit, limits, operation) };
  });
}
