import { plansAt } from '../../keys/plans.ts';
import type { Settings } from '../../shared/model.ts';

/**
 * What a process knows of a key without asking the store. `banned`: it saw the ban. `expired`: no secret of the key is valid
 * any more. A key in several states counts in the first of `disabled`, `expired`, `banned`.
 */
const keyStates = ['ok', 'banned', 'expired', 'disabled'] as const;

export type KeyState = (typeof keyStates)[number];

export interface KeyCount {
  readonly plan: string;
  readonly state: KeyState;
  readonly keys: number;
}

/**
 * Counts the configured keys by plan and state, those that are 0 included: a series that came and went would hide changes
 * from Prometheus.
 */
export function countKeys(
  settings: Pick<Settings, 'plans' | 'keys'>,
  bannedKeys: Iterable<string>,
  nowMs: number,
): readonly KeyCount[] {
  const { keys } = settings;
  const counts = new Map([...plansAt(settings, nowMs).keys()].map((plan) => [plan, countsOfNone()]));
  keys.tally((plan, isDisabled, lastEndMs) => {
    const ofPlan = counts.get(plan);
    if (ofPlan !== undefined) ofPlan[isDisabled ? 'disabled' : lastEndMs <= nowMs ? 'expired' : 'ok'] += 1;
  });
  for (const id of new Set(bannedKeys)) {
    const key = keys.get(id);
    const ofPlan = key && counts.get(key.plan);
    if (ofPlan === undefined || key?.disabled) continue;
    if (!keys.secretsOf(id).some(({ expiresMs }) => expiresMs > nowMs)) continue;
    ofPlan.ok -= 1;
    ofPlan.banned += 1;
  }
  return [...counts].flatMap(([plan, ofPlan]) =>
    keyStates.map((state) => ({ plan, state, keys: ofPlan[state] })),
  );
}

function countsOfNone(): Record<KeyState, number> {
  return { ok: 0, banned: 0, expired: 0, disabled: 0 };
}
