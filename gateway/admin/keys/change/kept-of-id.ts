import type { StatedKey } from '../../../keys/key-schema.ts';
import { inForceForDirectory } from '../../../keys/key-table.ts';
import { compileKey } from '../../../keys/plans/compile-key.ts';
import { policyName } from '../../../shared/words/limit-names.js';
import type { KeptOfId } from '../../wires/keys/definitions.ts';
import { banAndGrant } from '../key-item.ts';
import type { KeySources } from '../key-sources.ts';

/** Reads the state that applies to an id; undefined when there is no such state, or when the store does not reply. */
export async function keptOfId(
  { settings, readStatus, nowMs }: Pick<KeySources, 'settings' | 'readStatus' | 'nowMs'>,
  stated: StatedKey,
): Promise<KeptOfId | undefined> {
  const key = compileKey(stated, inForceForDirectory(settings(), nowMs()));
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
  const { ban, grant } = banAndGrant({ ...status, ban: rateLimit.ban });
  if (windows.length === 0 && ban === undefined && grant === undefined) return undefined;
  return { windows: windows.length > 0 ? windows : undefined, ban, grant };
}
