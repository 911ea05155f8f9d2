import { ownGroupsOf, toLimitFields, withGroups } from '../../keys/limits/limit-fields.ts';
import type { LaterTerms } from '../../keys/plans/plans.ts';
import type { WholeResponse } from '../../shared/errors.ts';
import type { Grant, Key, KeyMembers, KeyStatus, RateLimitState } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { exemptionMembers } from '../../shared/schema/exemptions.ts';
import { policyName } from '../../shared/words/limit-names.js';
import type { Link } from './links/link-store.ts';

/**
 * Makes the JSON value that shows a key holder the limits of the key. Timestamps are in ISO 8601 format.
 *
 * @param later the later limits of the key, and its later plans
 * @param members the members that belong to capabilities
 * @param openedBy the link that opened the page; or the time at which the presented secret expires, epoch ms (undefined when it never
 *   expires), and whether it can be rotated
 */
export function limitsView(
  key: Pick<Key, 'id' | 'plan' | 'limits' | 'ownGroups' | 'concurrent'>,
  { rateLimit, used, grant }: Pick<KeyStatus, 'rateLimit' | 'used' | 'grant'>,
  {
    later,
    members: { links = [], ...members },
    openedBy,
    showsBanReason,
  }: {
    readonly later: readonly LaterTerms[];
    readonly members: KeyMembers;
    readonly showsBanReason: boolean;
    readonly openedBy:
      | Pick<Link, 'by' | 'endMs'>
      | { readonly expiresMs: number | undefined; readonly canRotate: boolean };
  },
): object {
  const { id, plan, limits, concurrent } = key;
  const { windows, ban } = rateLimit;
  const own = ownGroupsOf(key);
  return {
    id,
    plan,
    windows: windows.map(({ name, group, limit, remaining, resetMs }, i) => ({
      name: policyName(name, group),
      limit,
      used: used[i],
      remaining,
      resetAt: isoOf(resetMs),
      operations: limits[i]?.operations,
    })),
    concurrent,
    ban: ban && { untilAt: isoOf(ban.untilMs), reason: reasonOf(ban, showsBanReason) },
    grant: grant && grantView(grant),
    upcoming:
      later.length === 0
        ? undefined
        : later.map(({ fromMs, plan: laterPlan, limits: ofPlan }) => ({
            from: isoOf(fromMs),
            plan: laterPlan === plan ? undefined : laterPlan,
            limits: toLimitFields(withGroups(ofPlan, own)),
          })),
    ...members,
    ...('by' in openedBy
      ? { link: { by: openedBy.by, untilAt: isoOf(openedBy.endMs) } }
      : {
          links: links.length > 0 ? links : undefined,
          secret: { expiresAt: isoOf(openedBy.expiresMs), canRotate: openedBy.canRotate || undefined },
        }),
  };
}

export function jsonPage(value: object): WholeResponse {
  const body = Buffer.from(JSON.stringify(value));
  const length = String(body.length);
  const fields = ['Content-Type', 'application/json', 'Content-Length', length, 'Cache-Control', 'no-store'];
  return { status: 200, fields, body };
}

function grantView(grant: Grant) {
  const { limits, fromMs, untilMs } = grant;
  const limited = limits.length > 0 ? toLimitFields(limits) : undefined;
  return { limits: limited, ...exemptionMembers(grant), fromAt: isoOf(fromMs), untilAt: isoOf(untilMs) };
}

function reasonOf({ byHand }: NonNullable<RateLimitState['ban']>, showsBanReason: boolean): string {
  if (byHand === undefined) return 'The key kept sending requests after 429.';
  const { reason } = byHand;
  return showsBanReason && reason !== undefined ? reason : 'The operator of the API banned the key.';
}
