import type { UpstreamFigures } from '../../fleet/process-state.ts';
import { plansInForce } from '../../keys/key-table.ts';
import { type Exchange, failureOf, ownMsOf, upstreamMsOf } from '../../request/exchange.ts';
import { groupNames } from '../../shared/limits.ts';
import { Histogram } from '../../shared/structures/histogram.ts';
import { policyName } from '../../shared/words/limit-names.js';

/**
 * The decision on a request. `counted` and `bucket_refused` are decisions of a bucket, such as the bucket of an
 * address.
 */
export type DecisionLabel =
  | 'none'
  | 'admitted'
  | 'refused'
  | 'banned'
  | 'crowded'
  | 'unavailable'
  | 'counted'
  | 'bucket_refused';

/**
 * The counts of exchanges are plain numbers, so that counting a request takes only a few additions. No label is a key, an address or a raw
 * path. The number of label sets is therefore bounded by the configuration, the statuses and the error codes.
 */
export interface RequestCounts {
  /** The requests by operation id (`''` without an operation), status and decision. */
  readonly requests: ReadonlyMap<string, ReadonlyMap<number, ReadonlyMap<DecisionLabel, number>>>;
  /** Requests that were refused before their key was known, by error code. */
  readonly rejected: ReadonlyMap<string, number>;
  /**
   * Requests of a key that a limit refused, by plan and limit: a window, `reports-minute` for a group of the plan, `group` for a group that
   * only the key has, or `concurrent`.
   */
  readonly refused: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Requests of a key that the trial of its plan refused, by plan and by what refused them: a window, `group`, `banned` or `concurrent`. */
  readonly trialRefused: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** Failed requests by the side at fault (`failureOf`). */
  readonly failures: ReadonlyMap<string, number>;
  /** Requests that failed at the upstream, by error code. */
  readonly upstreamFailures: ReadonlyMap<string, number>;
  /** Requests that ended at an upstream, by the upstream's name. */
  readonly byUpstream: ReadonlyMap<string, UpstreamFigures>;
  readonly upstreamRetries: number;
  readonly requestDuration: Durations;
  /** The duration of requests without the time at the upstream. */
  readonly ownDuration: Durations;
  readonly upstreamDuration: Durations;
  readonly decisionDuration: Durations;
}

export type Durations = Readonly<Pick<Histogram, 'counts' | 'sumMs'>>;

export type RequestMetrics = ReturnType<typeof createRequestMetrics>;

export function createRequestMetrics() {
  const requests = new Map<string, Map<number, Map<DecisionLabel, number>>>();
  const rejected = new Map<string, number>();
  const refused = new Map<string, Map<string, number>>();
  const trialRefused = new Map<string, Map<string, number>>();
  const failures = new Map<string, number>([
    ['gateway', 0],
    ['upstream', 0],
  ]);
  const upstreamFailures = new Map<string, number>();
  const byUpstream = new Map<string, { requests: number; failed: number }>();
  const requestDuration = new Histogram();
  const ownDuration = new Histogram();
  const upstreamDuration = new Histogram();
  const decisionDuration = new Histogram();
  let upstreamRetries = 0;
  let inFlight = 0;

  function countUpstream(name: string, hasFailed: boolean): void {
    const counts = byUpstream.get(name);
    if (counts === undefined) {
      byUpstream.set(name, { requests: 1, failed: hasFailed ? 1 : 0 });
      return;
    }
    counts.requests += 1;
    if (hasFailed) counts.failed += 1;
  }

  return {
    /** Returns the live counts of this process, which later requests change. */
    counts: (): RequestCounts => ({
      requests,
      rejected,
      refused,
      trialRefused,
      failures,
      upstreamFailures,
      byUpstream,
      upstreamRetries,
      requestDuration,
      ownDuration,
      upstreamDuration,
      decisionDuration,
    }),
    /** Returns the number of unfinished exchanges. */
    inFlight: () => inFlight,
    /** Counts the beginning of an exchange. */
    begin() {
      inFlight += 1;
    },
    /** Counts the end of an exchange. */
    end(exchange: Exchange) {
      inFlight -= 1;
      const { offered, status, decision, key, errorCode, upstream, fault } = exchange;
      const { startedMs, decidedMs, endedMs } = exchange;
      const byStatus = child(requests, offered?.operation.id ?? '');
      const label = labelOf(exchange);
      add(child(byStatus, status), label);
      const failure = failureOf(exchange);
      if (failure !== undefined) add(failures, failure);
      requestDuration.add(endedMs - startedMs);
      ownDuration.add(ownMsOf(exchange));
      if (decidedMs !== undefined) decisionDuration.add(decidedMs - startedMs);
      if (key === undefined && errorCode !== undefined) add(rejected, errorCode);
      if (key !== undefined && label === 'refused') {
        const { name = '', group } = decision?.rateLimit.inForce ?? {};
        const isOfKey = group !== undefined && !groupsOfPlan(exchange, key.plan).includes(group);
        add(child(refused, key.plan), isOfKey ? 'group' : policyName(name, group));
      } else if (key !== undefined && label === 'crowded') {
        add(child(refused, key.plan), 'concurrent');
      }
      const trial = decision?.trial;
      if (trial !== undefined && trial !== 'admitted' && key !== undefined) {
        add(child(trialRefused, key.plan), trial);
      }
      if (upstream === undefined) return;
      const upstreamMs = upstreamMsOf(exchange);
      if (upstreamMs !== undefined) upstreamDuration.add(upstreamMs);
      upstreamRetries += Math.max(0, upstream.attempts - 1);
      if (fault === 'upstream' && errorCode !== undefined) add(upstreamFailures, errorCode);
      if (offered !== undefined && (fault === 'upstream' || (upstream.attempts > 0 && status !== 499))) {
        countUpstream(offered.operation.upstream, fault === 'upstream');
      }
    },
  };
}

function labelOf({ decision }: Exchange): DecisionLabel {
  if (decision === undefined) return 'none';
  // A refusal by a key's windows has `retryAtMs`, and a refusal by a bucket does not.
  return decision.kind === 'refused' && !('retryAtMs' in decision) ? 'bucket_refused' : decision.kind;
}

/** Returns the names of the groups of a plan. The number of groups that only keys have is not bounded. */
function groupsOfPlan({ snapshot }: Exchange, plan: string): readonly string[] {
  return groupNames(plansInForce(snapshot.settings).get(plan)?.limits ?? []);
}

function add<Label>(counts: Map<Label, number>, label: Label): void {
  counts.set(label, (counts.get(label) ?? 0) + 1);
}

function child<Label, Inner, Value>(counts: Map<Label, Map<Inner, Value>>, label: Label): Map<Inner, Value> {
  const known = counts.get(label);
  if (known !== undefined) return known;
  const made = new Map<Inner, Value>();
  counts.set(label, made);
  return made;
}
