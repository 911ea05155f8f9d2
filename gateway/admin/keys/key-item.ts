import type * as z from 'zod';
import { toLimitFields } from '../../keys/limits/limit-fields.ts';
import type { Grant, Key, KeyStatus, Leak, RateLimitState } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { exemptionMembers } from '../../shared/schema/exemptions.ts';
import type { KeyState } from '../../shared/schema/query-words.ts';
import { policyName } from '../../shared/words/limit-names.js';
import type { RecentUsage } from '../../usage/read/usage-reader.ts';
import { differingUnits } from '../../usage/tally.ts';
import type { leakShown } from '../wires/keys/key.ts';
import type { KeyItem } from '../wires/keys/keys.ts';
import type { ListedKey } from './find-keys.ts';
import type { SecretView } from './key-sources.ts';

const nearShare = 0.8;

export interface ItemFacts extends ListedKey {
  readonly status: KeyStatus | undefined;
  /** Undefined when no requests are recorded, and `off` when the usage record is switched off. */
  readonly recent: RecentUsage | 'off' | 'unknown' | undefined;
  readonly nowMs: number;
}

export function keyItemOf(facts: ItemFacts): KeyItem {
  const { key, source, place, status, recent } = facts;
  const isUnknown = status?.isUnknown === true;
  const isKnown = recent !== 'off' && recent !== 'unknown' && !(isUnknown && recent === undefined);
  return {
    id: key.id,
    name: key.name,
    plan: key.plan,
    state: stateOf(facts),
    source,
    ...place,
    newestSecretAt: isoOf(newestSecret(facts.secrets, facts.nowMs)?.createdMs),
    windows: (isUnknown ? [] : (status?.rateLimit.windows ?? [])).map(
      ({ name, group, limit, remaining, resetMs }, index) => {
        const used = status?.used[index] ?? 0;
        return { name: policyName(name, group), limit, used, remaining, resetMs };
      },
    ),
    ...(status && banAndGrant({ ...status, ban: status.rateLimit.ban })),
    ...(isKnown && {
      lastSeenMs: recent?.lastSeenMs,
      offered24h: recent?.offered ?? 0,
      refused24h: recent === undefined ? 0 : recent.offered - recent.admitted,
      units24h: recent && differingUnits(recent),
    }),
  };
}

/** The valid secret that was issued last. A secret of unknown age is older than all others. */
export function newestSecret(secrets: readonly SecretView[], nowMs: number): SecretView | undefined {
  return secrets
    .filter(({ expiresMs }) => expiresMs > nowMs)
    .reduce<SecretView | undefined>(
      (newest, one) => ((one.createdMs ?? 0) >= (newest?.createdMs ?? 0) ? one : newest),
      undefined,
    );
}

export function banAndGrant({
  ban,
  banLevel,
  grant,
}: {
  readonly ban: Pick<NonNullable<RateLimitState['ban']>, 'untilMs' | 'byHand'> | undefined;
  readonly banLevel: number;
  readonly grant?: Grant | undefined;
}): Pick<KeyItem, 'ban' | 'grant'> {
  return {
    ban: ban && {
      untilMs: ban.untilMs,
      level: banLevel,
      ...(ban.byHand && { byHand: true, reason: ban.byHand.reason }),
    },
    grant: grant && {
      limits: grant.limits.length > 0 ? toLimitFields(grant.limits) : undefined,
      ...exemptionMembers(grant),
      fromMs: grant.fromMs,
      untilMs: grant.untilMs,
    },
  };
}

function stateOf({ key, status, secrets, recent, nowMs, isUnread }: ItemFacts): KeyState {
  if (isUnread) return 'unknown';
  const fixed = fixedState(key, secrets, nowMs);
  if (fixed !== undefined) return fixed;
  if (status === undefined || status.isUnknown) return 'unknown';
  const { rateLimit, used } = status;
  if (rateLimit.ban !== undefined) return 'banned';
  if (rateLimit.windows.some(({ remaining }) => remaining === 0)) return 'limited';
  const isNear = ({ name, limit }: { name: string; limit: number }, index: number) =>
    name !== 'second' && (used[index] ?? 0) >= nearShare * limit;
  if (rateLimit.windows.some(isNear)) return 'near';
  const isCounted = used.some((requests) => requests > 0);
  return recent === undefined && !isCounted ? 'unused' : 'ok';
}

/** Returns the state of a key whose requests all get 401; undefined for any other key. */
export function fixedState(
  { disabled, limits }: Key,
  secrets: readonly SecretView[],
  nowMs: number,
): 'disabled' | 'expired' | 'no_secret' | undefined {
  if (disabled || limits.length === 0) return 'disabled';
  if (secrets.length === 0) return 'no_secret';
  return secrets.some(({ expiresMs }) => expiresMs > nowMs) ? undefined : 'expired';
}

export function leakView({ atMs, ...leak }: Leak): z.output<typeof leakShown> {
  return { at: isoOf(atMs), ...leak };
}
