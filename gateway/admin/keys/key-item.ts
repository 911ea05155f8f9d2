import * as z from 'zod';
import { limits } from '../../keys/key-schema.ts';
import { toLimitFields } from '../../keys/limit-fields.ts';
import { policyName } from '../../shared/limits.ts';
import type { Grant, Key, KeyStatus } from '../../shared/model.ts';
import type { RecentUsage } from '../../usage/read/usage-reader.ts';
import { differingUnits } from '../../usage/tally.ts';
import {
  chargedUnits,
  count,
  epochMs,
  limitName,
  limitsByField,
  list,
  positive,
  words,
} from '../api/response-parts.ts';
import type { ListedKey } from './find-keys.ts';
import type { SecretView } from './key-sources.ts';

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

export const keyState = words(...keyStates).describe(
  'The most important state of the key. Requests of a key that is `disabled` (also if its plan is not in the configuration), `expired` or without a secret (`no_secret`) get 401. `limited`: a window has no unit left, so it refuses every request that it counts and that costs something. A window of a group counts only requests of the operations in this group. A key with fewer units left than an operation costs is not `limited`. `near`: four fifths of a window longer than a second are spent. `unused`: no request is recorded. `unknown`: the server of the Redis Cluster with its counts does not reply, while other servers do.',
);

const ban = z
  .object({
    untilMs: epochMs,
    level: positive.describe('The number of consecutive bans.'),
  })
  .optional();

export const grantShown = z
  .object({
    limits: limitsByField.meta({ of: limits }).optional().describe('Absent if the grant changes no limit.'),
    noBrownouts: z
      .literal(true)
      .optional()
      .describe('Present if the key may call operations during their brownouts.'),
    fromMs: epochMs
      .optional()
      .describe('The beginning of the grant, in epoch milliseconds; absent after this time.'),
    untilMs: epochMs.describe('The end of the grant, in epoch milliseconds.'),
  })
  .describe(
    'A grant that an operator gave the key, until it ends. Its limits replace the limits of the same windows. `windows` shows the effective limits.',
  );

/** The ban and the grant of a key. */
export const banAndGrantShape = { ban, grant: grantShown.optional() };

export const keyItem = z.object({
  id: z.string(),
  name: z.string().optional(),
  plan: z
    .string()
    .describe('The plan of the key; empty if the definition of a directory key cannot be read.'),
  state: keyState,
  source: words('file', 'directory').describe('The source of the key.'),
  file: z.string().optional().describe('The keys file, relative to the folder of the configuration.'),
  line: positive.optional().describe('The first line of the entry in this file.'),
  windows: list(
    z.object({
      name: limitName,
      limit: positive,
      used: count,
      remaining: count,
      resetMs: epochMs.describe('The time when the window resets, in epoch milliseconds.'),
    }),
  ).describe(
    'The windows, with the shortest window first, and then the windows of each group; no window if the state is `unknown`.',
  ),
  ...banAndGrantShape,
  lastSeenMs: epochMs
    .optional()
    .describe('The time of the last request, in epoch milliseconds; absent without a recorded request.'),
  offered24h: count.optional().describe('Requests of the last 24 hours; absent without a usage record.'),
  refused24h: count
    .optional()
    .describe('Requests of the last 24 hours that were not admitted, including bans.'),
  units24h: chargedUnits,
});

export type KeyItem = z.output<typeof keyItem>;

export interface ItemFacts extends ListedKey {
  /** The quota status of the key; undefined when it is unknown. */
  readonly status: KeyStatus | undefined;
  /**
   * The recent usage of the key; undefined when no requests are recorded, and `off` when the usage record is switched
   * off.
   */
  readonly recent: RecentUsage | 'off' | 'unknown' | undefined;
  readonly nowMs: number;
}

export function keyItemOf(facts: ItemFacts): KeyItem {
  const { key, source, place, status, recent } = facts;
  const isKnown = recent !== 'off' && recent !== 'unknown';
  return {
    id: key.id,
    name: key.name,
    plan: key.plan,
    state: stateOf(facts),
    source,
    ...place,
    windows: (status?.rateLimit.windows ?? []).map(({ name, group, limit, remaining, resetMs }, index) => {
      const used = status?.used[index] ?? 0;
      return { name: policyName(name, group), limit, used, remaining, resetMs };
    }),
    ...(status && banAndGrant({ ...status, banUntilMs: status.rateLimit.ban?.untilMs })),
    ...(isKnown && {
      lastSeenMs: recent?.lastSeenMs,
      offered24h: recent?.offered ?? 0,
      refused24h: recent === undefined ? 0 : recent.offered - recent.admitted,
      units24h: recent && differingUnits(recent),
    }),
  };
}

/** Returns the ban and the grant of a key in the form of a response. */
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
    ban: banUntilMs === undefined ? undefined : { untilMs: banUntilMs, level: banLevel },
    grant: grant && {
      ...grant,
      limits: grant.limits.length > 0 ? toLimitFields(grant.limits) : undefined,
    },
  };
}

function stateOf({ key, status, secrets, recent, nowMs, isUnread }: ItemFacts): KeyState {
  if (isUnread) return 'unknown';
  const fixed = fixedState(key, secrets, nowMs);
  if (fixed !== undefined) return fixed;
  if (status === undefined) return 'unknown';
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
