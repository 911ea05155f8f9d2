import { type LimitsByField, toLimitFields } from '../../keys/limit-fields.ts';
import type { Grant, Key, KeyStatus } from '../../shared/model.ts';
import type { RecentUsage } from '../../usage/usage-reader.ts';
import type { ListedKey } from './find-keys.ts';
import type { SecretView } from './key-sources.ts';

/**
 * The most important fact about a key now. Every request gets 401 in the states `disabled` (also where its plan is not in the configuration),
 * `expired` (all its secrets have expired) and `no_secret` (it has none).
 * `limited`: a window is spent. `near`: of a window longer than a second four fifths are. `unused`: no request is recorded.
 * `unknown`: the server of Redis that keeps its counts gives no answer, while others do.
 */
export const keyStates = [
  'ok',
  'near',
  'limited',
  'banned',
  'disabled',
  'expired',
  'no_secret',
  'unused',
  'unknown',
] as const;

export type KeyState = (typeof keyStates)[number];

const nearShare = 0.8;

/** A key in a list. Instants are epoch ms. */
export interface KeyItem {
  readonly id: string;
  readonly name?: string;
  readonly plan: string;
  readonly state: KeyState;
  /** The place of its definition. */
  readonly source: 'file' | 'directory';
  /** The keys file as seen from the folder of the configuration, and the line there, from 1. */
  readonly file?: string;
  readonly line?: number;
  /** Empty when the state is `unknown`. */
  readonly windows: readonly {
    readonly name: string;
    readonly limit: number;
    readonly used: number;
    readonly remaining: number;
    readonly resetMs: number;
  }[];
  readonly ban?: { readonly untilMs: number; readonly level: number };
  /** A grant that has not ended. Its limits replace the key's limits of the same windows. With `fromMs` it has not begun. */
  readonly grant?: {
    readonly limits: LimitsByField;
    readonly fromMs?: number | undefined;
    readonly untilMs: number;
  };
  readonly lastSeenMs?: number;
  readonly offered24h?: number;
  readonly refused24h?: number;
}

export interface ItemFacts extends ListedKey {
  /** Undefined: unknown. */
  readonly status: KeyStatus | undefined;
  /** `off`: nothing is recorded at all; undefined: nothing of this key. */
  readonly recent: RecentUsage | 'off' | 'unknown' | undefined;
  readonly nowMs: number;
}

export function keyItem(facts: ItemFacts): KeyItem {
  const { key, source, place, status, recent } = facts;
  return {
    id: key.id,
    ...(key.name !== undefined && { name: key.name }),
    plan: key.plan,
    state: stateOf(facts),
    source,
    ...place,
    windows: (status?.rateLimit.windows ?? []).map(({ name, limit, remaining, resetMs }, index) => {
      return { name, limit, used: status?.used[index] ?? 0, remaining, resetMs };
    }),
    ...(status && banAndGrant({ ...status, banUntilMs: status.rateLimit.banUntilMs })),
    ...(recent !== 'off' &&
      recent !== 'unknown' && {
        ...(recent && { lastSeenMs: recent.lastSeenMs }),
        offered24h: recent?.offered ?? 0,
        refused24h: recent === undefined ? 0 : recent.offered - recent.admitted,
      }),
  };
}

/** The members of an item that say what was done to a key for a while. */
export function banAndGrant({
  banUntilMs,
  banLevel,
  grant,
}: {
  readonly banUntilMs: number | undefined;
  readonly banLevel: number;
  readonly grant?: Grant | undefined;
}): Pick<KeyItem, 'ban' | 'grant'> {
  return {
    ...(banUntilMs !== undefined && { ban: { untilMs: banUntilMs, level: banLevel } }),
    ...(grant && { grant: { ...grant, limits: toLimitFields(grant.limits) } }),
  };
}

function stateOf({ key, status, secrets, recent, nowMs, isUnread }: ItemFacts): KeyState {
  if (isUnread) return 'unknown';
  const fixed = fixedState(key, secrets, nowMs);
  if (fixed !== undefined) return fixed;
  if (status === undefined) return 'unknown';
  const { rateLimit, used } = status;
  if (rateLimit.banUntilMs !== undefined) return 'banned';
  if (rateLimit.windows.some(({ remaining }) => remaining === 0)) return 'limited';
  const isNear = ({ name, limit }: { name: string; limit: number }, index: number) =>
    name !== 'second' && (used[index] ?? 0) >= nearShare * limit;
  if (rateLimit.windows.some(isNear)) return 'near';
  const isCounted = used.some((requests) => requests > 0);
  return recent === undefined && !isCounted ? 'unused' : 'ok';
}

/** The state of a key that gets 401 whatever its counts are. */
export function fixedState(
  { disabled, limits }: Key,
  secrets: readonly SecretView[],
  nowMs: number,
): 'disabled' | 'expired' | 'no_secret' | undefined {
  if (disabled || limits.length === 0) return 'disabled';
  if (secrets.length === 0) return 'no_secret';
  return secrets.some(({ expiresMs }) => expiresMs > nowMs) ? undefined : 'expired';
}
