import { compileKey } from '../../../keys/compile-key.ts';
import type { StatedKey } from '../../../keys/key-schema.ts';
import { plansAt } from '../../../keys/plans.ts';
import { banAndGrant, type KeyItem } from '../key-item.ts';
import type { KeySources } from '../key-sources.ts';

/** The state that a later key with the same id inherits: counts of open windows, a ban, a grant. */
export interface KeptOfId extends Pick<KeyItem, 'ban' | 'grant'> {
  readonly windows?: readonly Pick<KeyItem['windows'][number], 'name' | 'used' | 'resetMs'>[];
}

/** Undefined when nothing is kept, or the store gives no answer. */
export async function keptOfId(
  { settings, readStatus, nowMs }: Pick<KeySources, 'settings' | 'readStatus' | 'nowMs'>,
  stated: StatedKey,
): Promise<KeptOfId | undefined> {
  const key = compileKey(stated, plansAt(settings(), nowMs()));
  const [status] = (key && (await readStatus([key]))) ?? [];
  if (status === undefined) return undefined;
  const { rateLimit, used } = status;
  const windows = rateLimit.windows
    .map(({ name, resetMs }, index) => ({ name, used: used[index] ?? 0, resetMs }))
    .filter((window) => window.used > 0);
  const kept = {
    ...(windows.length > 0 && { windows }),
    ...banAndGrant({ ...status, banUntilMs: rateLimit.banUntilMs }),
  };
  return Object.keys(kept).length === 0 ? undefined : kept;
}
