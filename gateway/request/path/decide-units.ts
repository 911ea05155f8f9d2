import { limitsOn } from '../../shared/limits.ts';
import type { Charge, Decision, Key, QuotaRules, StaleKey } from '../../shared/model.ts';
import { type Authenticated, withResults } from '../exchange.ts';
import type { KnownKey } from '../snapshot.ts';
import type { Stations } from '../stations.ts';
import { authenticateRequest } from './authenticate-request.ts';
import type { Ending } from './end-exchange.ts';
import { refuseUnauthenticated, refuseUnread } from './refuse-unauthenticated.ts';

/**
 * Decides a request. A request that costs more than a limit of its key is first decided with the cost 0, so that a ban is detected. If the
 * returned decision contains fewer units than the request costs, the caller must refuse the request. The trial of the plan decides each
 * request once with its cost, because the limits of the trial may be higher.
 */
export function decideUnits(
  key: Key,
  charge: Charge,
  rules: QuotaRules,
  limiter: Pick<Stations['limiter'], 'decide' | 'release'>,
): Promise<Decision | StaleKey> {
  const { units, operation } = charge;
  return units > 1 && limitsOn(key.limits, operation).some(({ max }) => max < units)
    ? decideAboveLimit(key, charge, rules, limiter)
    : limiter.decide(key, rules, charge);
}

/** A grant can raise the limits. Only a decision shows the limits of a grant. */
async function decideAboveLimit(...[key, charge, rules, limiter]: Parameters<typeof decideUnits>) {
  const { units } = charge;
  const free = await limiter.decide(key, rules, { ...charge, units: 0 }, units);
  const isRaised = free.kind === 'admitted' && free.rateLimit.windows.every(({ limit }) => limit >= units);
  if (!isRaised) return free;
  // The second decision counts the request again, so the first decision must no longer count towards the concurrency limit.
  if (key.concurrent !== undefined) limiter.release(key.id);
  const decision = await limiter.decide(key, rules, charge, 0);
  return free.trial === undefined || decision.kind === 'stale'
    ? decision
    : { ...decision, trial: free.trial };
}

/** A result of the limiter that does not show whether its key is current. */
type Unconfirmed = StaleKey | (Decision & ({ readonly source: 'local' } | { readonly kind: 'crowded' }));

/**
 * Whether the key of a decision may be outdated, so that `decideCurrent` must check it. The store decides only requests of current keys, and
 * a process refuses requests from memory only just after a decision of the store. Other decisions do not show whether a key of the directory
 * has changed.
 */
export function isUnconfirmed(
  decision: Decision | StaleKey,
  { generation }: Pick<Key, 'generation'>,
): decision is Unconfirmed {
  if (decision.kind === 'stale') return true;
  if (generation === undefined || decision.kind === 'unavailable') return false;
  return decision.source === 'local' || decision.kind === 'crowded';
}

/**
 * Decides a request for its current key, after a first decision that is unconfirmed. If the key has changed, the key is read again, or the
 * leaked secrets of the configuration, and the request is decided with the new limits.
 */
export async function decideCurrent(
  exchange: Authenticated,
  first: Unconfirmed,
  charge: Charge,
  stations: Stations,
): Promise<Ending | { readonly kind: 'decided'; readonly key: KnownKey; readonly decision: Decision }> {
  const { limiter, directory, blocked, bounds } = stations;
  let { key } = exchange;
  let decision = await confirm(key, first, stations);
  if (decision === undefined) withResults(exchange, { key: undefined });
  for (let reads = 0; decision === undefined && reads < bounds.directoryRereadsMax; reads++) {
    if (key.generation !== undefined) directory?.drop(key.id, key.generation);
    else if (!(await blocked.readAgain())) break;
    const caller = await authenticateRequest(exchange, stations);
    if (caller.kind !== 'authenticated') return refuseUnauthenticated(exchange, stations, caller);
    ({ key } = caller);
    decision = await confirm(key, await decideUnits(key, charge, exchange.snapshot.rules, limiter), stations);
  }
  return decision === undefined ? refuseUnread(exchange, stations) : { kind: 'decided', key, decision };
}

/**
 * Returns the decision if its key is current; undefined otherwise. The key is read again if the process has not read it recently. If the
 * store does not reply to this read, the cached key counts as current.
 *
 * If the key has changed, the decision has no effect except its charge, and the request no longer counts towards the concurrency limit.
 */
async function confirm(
  key: Key,
  decision: Decision | StaleKey,
  { directory, limiter }: Pick<Stations, 'directory' | 'limiter'>,
): Promise<Decision | undefined> {
  if (!isUnconfirmed(decision, key)) return decision;
  if (decision.kind === 'stale') return undefined;
  if (directory === undefined || key.generation === undefined) return decision;
  if (await directory.confirm(key.id, key.generation)) return decision;
  if (decision.kind === 'admitted' && key.concurrent !== undefined) limiter.release(key.id);
  return undefined;
}
