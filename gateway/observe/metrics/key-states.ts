import type { Settings } from '../../model.ts';
import { rememberLast } from '../../structures/remember-last.ts';

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
 * from Prometheus. When the last secret of each key ends is remembered as long as the settings are the same.
 */
export function createKeyCounts(): (
  settings: Settings,
  bannedKeys: Iterable<string>,
  nowMs: number,
) => readonly KeyCount[] {
  const endsOf = rememberLast(lastSecretEnds);

  return (settings, bannedKeys, nowMs) => {
    const { plans, keys } = settings;
    const endsMs = endsOf(settings);
    const banned = new Set(bannedKeys);
    const counts = new Map([...plans.keys()].map((plan) => [plan, countsOfNone()]));
    for (const { id, plan, disabled } of keys.values()) {
      const ofPlan = counts.get(plan);
      if (ofPlan !== undefined) ofPlan[stateOf(id, disabled)] += 1;
    }
    return [...counts].flatMap(([plan, ofPlan]) =>
      keyStates.map((state) => ({ plan, state, keys: ofPlan[state] })),
    );

    function stateOf(id: string, disabled: boolean): KeyState {
      if (disabled) return 'disabled';
      if ((endsMs.get(id) ?? 0) <= nowMs) return 'expired';
      return banned.has(id) ? 'banned' : 'ok';
    }
  };
}

function countsOfNone(): Record<KeyState, number> {
  return { ok: 0, banned: 0, expired: 0, disabled: 0 };
}

/** By key, when the secret expires that expires last, epoch ms. */
function lastSecretEnds({ secrets }: Settings): ReadonlyMap<string, number> {
  const endsMs = new Map<string, number>();
  for (const { keyId, expiresMs } of secrets.values()) {
    endsMs.set(keyId, Math.max(endsMs.get(keyId) ?? 0, expiresMs));
  }
  return endsMs;
}
