import type { Settings } from '../../shared/model.ts';

/**
 * The state of a key, as far as this process knows it without reading the store. `banned` means that this process has
 * seen the ban. `expired` means that all secrets of the key have expired. `no_secret` means that the key has no
 * secret. If several states apply, the key counts under the first of `disabled`, `no_secret`, `expired`, `banned`.
 */
const keyStates = ['ok', 'banned', 'expired', 'no_secret', 'disabled'] as const;

type KeyState = (typeof keyStates)[number];

export interface KeyCount {
  readonly plan: string;
  readonly state: KeyState;
  readonly keys: number;
}

/**
 * Counts the configured keys of each plan and state. Zeros are included, because Prometheus misses the first change of
 * a series that did not exist before.
 */
export function countKeys(
  settings: Pick<Settings, 'plans' | 'keys'>,
  bannedKeys: Iterable<string>,
  nowMs: number,
): readonly KeyCount[] {
  const { keys } = settings;
  const counts = new Map([...settings.plans.keys()].map((plan) => [plan, countsOfNone()]));
  keys.tally((plan, isDisabled, lastEndMs) => {
    const ofPlan = counts.get(plan);
    if (ofPlan === undefined) return;
    const withoutSecret = lastEndMs === 0 ? 'no_secret' : 'expired';
    ofPlan[isDisabled ? 'disabled' : lastEndMs <= nowMs ? withoutSecret : 'ok'] += 1;
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
  return { ok: 0, banned: 0, expired: 0, no_secret: 0, disabled: 0 };
}
