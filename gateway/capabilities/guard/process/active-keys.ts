import type { RedisConnection } from '../../../redis/redis-connection.ts';
import { replyOrUndefined } from '../../../redis/redis-reply.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { guardKeys } from './redis-keys.ts';

/** The keys of a plan that this process has noted. The maps have the time of the note by the id of the key, the earliest time first. */
interface Noted {
  readonly keys: Map<string, number>;
  readonly unsent: Map<string, number>;
}

/**
 * Counts the keys of each plan that were active in the last 24 hours, in all processes together. A guard needs the number only up to
 * `guardActiveKeysMax`, so Redis has only so many keys of each plan, the latest. A process notes a key again after `guardActiveRenewMs`, and
 * notes no further key of a plan while it has noted enough keys. Most requests are therefore not noted.
 *
 * Plans without a guard are counted too, because an edit adds the guard at a time when few keys may be active.
 */
export function createActiveKeys({
  redis,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly bounds: Bounds;
}) {
  const { guardActiveKeysMax, guardActiveMs, guardActiveRenewMs } = bounds;
  const plans = new Map<string, Noted>();

  return {
    /** Notes that a key of the plan is active at `nowMs`, epoch ms on the store's clock. */
    note(plan: string, keyId: string, nowMs: number): void {
      const noted = plans.get(plan) ?? { keys: new Map(), unsent: new Map() };
      if (noted.keys.size === 0) plans.set(plan, noted);
      const { keys, unsent } = noted;
      // The absolute value matters after a step of the clock.
      const isRecent = (sinceMs: number | undefined) =>
        sinceMs !== undefined && Math.abs(nowMs - sinceMs) < guardActiveRenewMs;
      if (keys.size === guardActiveKeysMax && isRecent(firstOf(keys)?.[1])) return;
      if (isRecent(keys.get(keyId))) return;
      for (const map of [keys, unsent]) {
        map.delete(keyId);
        map.set(keyId, nowMs);
        if (map.size > guardActiveKeysMax) map.delete(firstOf(map)?.[0] ?? '');
      }
    },
    /**
     * Sends the notes of this process, and counts the active keys of plans. The number is Infinity if Redis does not reply.
     *
     * @param of the plans to count
     */
    async count(of: readonly string[], nowMs: number): Promise<ReadonlyMap<string, number>> {
      const unsent = [...plans].filter(([, noted]) => noted.unsent.size > 0);
      const shared = of.length > 0 || unsent.length > 0 ? await share(of, unsent, nowMs) : [];
      return new Map(
        of.map((plan, at) => {
          const here = (plans.get(plan)?.keys.values() ?? [].values()).filter(
            (atMs) => nowMs - atMs < guardActiveMs,
          );
          return [plan, Math.max(shared[at] ?? Number.POSITIVE_INFINITY, [...here].length)];
        }),
      );
    },
  };

  /** @returns the number of active keys of each plan; undefined for a plan without a reply */
  async function share(
    of: readonly string[],
    unsent: readonly [string, Noted][],
    nowMs: number,
  ): Promise<readonly (number | undefined)[]> {
    const { commands, prefix, gather, isReady } = redis;
    const nameOf = (plan: string) => guardKeys.activeKeys.name(prefix, plan);
    const attempt = <T>(plan: string, call: (name: string) => Promise<T>) =>
      replyOrUndefined({ isReady }, [nameOf(plan)], () => call(nameOf(plan)), bounds.storePatientDeadlineMs);
    const { sent, counts } = gather(() => ({
      sent: unsent.map(async ([plan, noted]) => {
        const notes = [...noted.unsent];
        const reply = await attempt(plan, (name) =>
          Promise.all<unknown>([
            commands.zadd(name, ...notes.flatMap(([keyId, atMs]) => [atMs, keyId])),
            commands.zremrangebyrank(name, 0, -guardActiveKeysMax - 1),
            commands.pexpire(name, guardActiveMs),
          ]),
        );
        if (reply === undefined) return;
        for (const [keyId, atMs] of notes) if (noted.unsent.get(keyId) === atMs) noted.unsent.delete(keyId);
      }),
      counts: of.map((plan) =>
        attempt(
          plan,
          async (name) => (await commands.zrangebyscore(name, nowMs - guardActiveMs, '+inf')).length,
        ),
      ),
    }));
    await Promise.all(sent);
    return Promise.all(counts);
  }
}

function firstOf(map: ReadonlyMap<string, number>): [string, number] | undefined {
  return map.entries().next().value;
}
