import * as z from 'zod';
import { compileKey } from '../../../keys/compile-key.ts';
import type { StatedKey } from '../../../keys/key-schema.ts';
import { plansInForce } from '../../../keys/key-table.ts';
import { policyName } from '../../../shared/limits.ts';
import { epochMs, limitName, list, positive } from '../../api/response-parts.ts';
import { banAndGrant, banAndGrantShape } from '../key-item.ts';
import type { KeySources } from '../key-sources.ts';

/**
 * The state of a deleted key that applies to a later key with the same id: counts of open windows, a ban, a grant.
 */
export const keptOfIdShown = z
  .object({
    windows: list(
      z.object({
        name: limitName,
        used: positive,
        resetMs: epochMs.describe('The time when the window resets, in epoch milliseconds.'),
      }),
    )
      .optional()
      .describe('The windows with used units.'),
    ...banAndGrantShape,
  })
  .describe(
    'The state that a key inherits from an earlier key with the same id. Present only in responses that issue or delete a key, and only if there is such state.',
  );

export type KeptOfId = z.output<typeof keptOfIdShown>;

/** Reads the state that applies to an id; undefined when there is no such state, or when the store does not reply. */
export async function keptOfId(
  { settings, readStatus }: Pick<KeySources, 'settings' | 'readStatus'>,
  stated: StatedKey,
): Promise<KeptOfId | undefined> {
  const key = compileKey(stated, plansInForce(settings()));
  const [status] = (key && (await readStatus([key]))) ?? [];
  if (status === undefined) return undefined;
  const { rateLimit, used } = status;
  const windows = rateLimit.windows
    .map(({ name, group, resetMs }, index) => ({
      name: policyName(name, group),
      used: used[index] ?? 0,
      resetMs,
    }))
    .filter((window) => window.used > 0);
  const { ban, grant } = banAndGrant({ ...status, banUntilMs: rateLimit.ban?.untilMs });
  if (windows.length === 0 && ban === undefined && grant === undefined) return undefined;
  return { windows: windows.length > 0 ? windows : undefined, ban, grant };
}
