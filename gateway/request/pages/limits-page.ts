import { toLimitFields } from '../../keys/limit-fields.ts';
import type { WholeResponse } from '../../shared/errors.ts';
import type { Grant, Key, KeyStatus } from '../../shared/model.ts';

/**
 * The page on which a key reads its own limits. Instants are ISO 8601.
 *
 * @param expiresMs when the secret that was presented expires, epoch ms; undefined when it never does
 */
export function limitsPage(
  { id, plan }: Pick<Key, 'id' | 'plan'>,
  { rateLimit, used, grant }: Pick<KeyStatus, 'rateLimit' | 'used' | 'grant'>,
  expiresMs: number | undefined,
): WholeResponse {
  const { windows, banUntilMs } = rateLimit;
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
    ...(banUntilMs !== undefined && { ban: { untilAt: isoInstant(banUntilMs), reason: banReason } }),
    ...(grant && { grant: grantView(grant) }),
    secret: { ...(expiresMs !== undefined && { expiresAt: isoInstant(expiresMs) }) },
  });
  const length = String(body.length);
  const fields = ['Content-Type', 'application/json', 'Content-Length', length, 'Cache-Control', 'no-store'];
  return { status: 200, fields, body };
}

function grantView({ limits, fromMs, untilMs }: Grant) {
  const from = fromMs !== undefined && { fromAt: isoInstant(fromMs) };
  return { limits: toLimitFields(limits), ...from, untilAt: isoInstant(untilMs) };
}

/** The ladder has one reason to ban. */
const banReason = 'The key kept sending requests after 429.';

function isoInstant(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
