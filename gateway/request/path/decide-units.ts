import type { Decision, Key, QuotaRules, StaleKey } from '../../shared/model.ts';
import { type Authenticated, found } from '../exchange.ts';
import type { KnownKey } from '../snapshot.ts';
import type { Stations } from '../stations.ts';
import { authenticateRequest } from './authenticate-request.ts';
import type { Ending } from './end-exchange.ts';
import { refuseUnauthenticated, refuseUnread } from './refuse-unauthenticated.ts';

/**
 * Decides a request that costs `units` units. A request that costs more than a limit of its key is first decided with the cost 0, so that a
 * ban is detected. If the returned decision contains fewer units than the request costs, the caller must refuse the request. The trial of
 * the plan decides each request once with its cost, because the limits of the trial may be higher.
 */
export function decideUnits(
  key: Key,
  units: number,
  rules: QuotaRules,
  limiter: Pick<Stations['limiter'], 'decide' | 'release'>,
): Promise<Decision | StaleKey> {
  return units > 1 && key.limits.some(({ max }) => max < units)
    ? decideAboveLimit(key, units, rules, limiter)
    : limiter.decide(key, rules, units);
}

/** A grant can raise the limits. Only a decision shows the limits of a grant. */
async function decideAboveLimit(...[key, units, rules, limiter]: Parameters<typeof decideUnits>) {
  const free = await limiter.decide(key, rules, 0, units);
  const isRaised = free.kind === 'admitted' && free.rateLimit.windows.every(({ limit }) => limit >= units);
  if (!isRaised) return free;
  // The second decision counts the request again, so the first decision must no longer count towards the concurrency limit.
  if (key.concurrent !== undefined) limiter.release(key.id);
  const decision = await limiter.decide(key, rules, units, 0);
  return free.trial === undefined || decision.kind === 'stale'
    ? decision
    : { ...decision, trial: free.trial };
}

/**
 * Whether a decision does not show whether its key is current. The store decides only requests of current keys, and a process refuses
 * requests from memory only just after a decision of the store. Other decisions do not show whether a key of the directory has changed.
 */
export function isUnconfirmed(decision: Decision): boolean {
  return decision.source === 'local' || decision.kind === 'crowded';
}

/**
 * Whether the key of an unconfirmed decision is current. The key is read again if the process has not read it recently. If the store does
 * not reply to this read, the cached key counts as current.
 *
 * If the key has changed, the decision has no effect except its charge, and the request no longer counts towards the concurrency limit.
 */
export async function isCurrent(
  key: Key,
  decision: Decision,
  { directory, limiter }: Pick<Stations, 'directory' | 'limiter'>,
): Promise<boolean> {
  if (directory === undefined || key.generation === undefined || decision.kind === 'unavailable') return true;
  if (await directory.confirm(key.id, key.generation)) return true;
  if (decision.kind === 'admitted' && key.concurrent !== undefined) limiter.release(key.id);
  return false;
}

/** Reads a changed key, or the leaked secrets of the configuration, again. Then decides the request with the new limits. */
export async function decideAgain(
  exchange: Authenticated,
  units: number,
  stations: Stations,
): Promise<Ending | { readonly kind: 'decided'; readonly key: KnownKey; readonly decision: Decision }> {
  const { limiter, directory, leaks, bounds } = stations;
  let { key } = exchange;
  found(exchange, { key: undefined });
  for (let reads = 0; reads < bounds.directoryRereadsMax; reads++) {
    if (key.generation !== undefined) directory?.drop(key.id, key.generation);
    else if (!(await leaks.blocked.readAgain())) break;
    const caller = await authenticateRequest(exchange, stations);
    if (caller.kind !== 'authenticated') return refuseUnauthenticated(exchange, stations, caller);
    ({ key } = caller);
    const decision = await decideUnits(key, units, exchange.snapshot.rules, limiter);
    if (decision.kind === 'stale') continue;
    if (isUnconfirmed(decision) && !(await isCurrent(key, decision, stations))) continue;
    return { kind: 'decided', key, decision };
  }
  return refuseUnread(exchange, stations);
}
