import type { KeyMembers } from '../../../shared/model.ts';
import type { ProcessSources } from '../../interfaces/running.ts';
import { createMemoryCredits, creditView } from './credit-store.ts';
import type { CreditCall } from './give-back.ts';
import { createRedisCredits } from './redis-credits.ts';

export type Credits = ReturnType<typeof createCredits>;

/** Gives keys back the units of their failed requests, and reads their last credits. The credits of a key are beside its counts. */
export function createCredits({
  counts,
  nowMs,
  bounds,
}: Pick<ProcessSources, 'counts' | 'nowMs' | 'bounds'>) {
  const store =
    counts.redis === undefined
      ? createMemoryCredits({ adjustBy: counts.adjustInMemory, nowMs, bounds })
      : createRedisCredits(counts.redis, bounds);
  return {
    /**
     * Gives a key back the units of its failed requests, once for each minute and upstream. Other processes apply the credit within
     * `bounds.refusalRememberedMs`. Does not lift a ban, and does not change reported thresholds.
     */
    async giveBack(call: CreditCall) {
      await counts.started;
      const reply = await store.giveBack(call);
      counts.forgetRefusalsOf(call.keyId);
      return reply;
    },
    /** Reads the last credits of each key, the newest first. */
    readKeyMembers: (keyIds: readonly string[]): Promise<readonly (KeyMembers | undefined)[]> =>
      Promise.all(
        keyIds.map(async (keyId) => {
          const [credits] = counts.isThere(keyId) ? await store.read([keyId]) : [];
          return credits && (credits.length === 0 ? {} : { credits: credits.map(creditView) });
        }),
      ),
  };
}
