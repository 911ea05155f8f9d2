import { toLimitFields } from '../../keys/limit-fields.ts';
import type { WholeResponse } from '../../shared/errors.ts';
import type { Grant, Key, KeyStatus } from '../../shared/model.ts';

/**
 * Makes the JSON response with which a key reads its own limits. Instants are ISO 8601.
 *
 * @param expiresMs the time at which the presented secret expires, epoch ms; undefined when it never expires
 */
export function limitsPage(
  { id, plan }: Pick<Key, 'id' | 'plan'>,
  { rateLimit, used, grant }: Pick<KeyStatus, 'rateLimit' | 'used' | 'grant'>,
  expiresMs: number | undefined,
): WholeResponse {
  const { windows, ban } = rateLimit;
  const body = JSON.stringify({
    id,
    plan,
    windows: windows.map(({ name, limit, remaining, resetMs }, i) => ({
      name,
      limit,
      used: used[i],
      remaining,
      resetAt: isoInstant(resetMs),
    })),
    ban: ban && { untilAt: isoInstant(ban.untilMs), reason: banReason },
    grant: grant && grantView(grant),
    secret: { expiresAt: expiresMs === undefined ? undefined : isoInstant(expiresMs) },
  });
  const length = String(body.length);
  const fields = ['Content-Type', 'application/json', 'Content-Length', length, 'Cache-Control', 'no-store'];
  return { status: 200, fields, body };
}

function grantView({ limits, fromMs, untilMs }: Grant) {
  const fromAt = fromMs === undefined ? undefined : isoInstant(fromMs);
  return { limits: toLimitFields(limits), fromAt, untilAt: isoInstant(untilMs) };
}

/** The reason of a ban. There is no other reason. */
const banReason = 'The key kept sending requests after 429.';

function isoInstant(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
