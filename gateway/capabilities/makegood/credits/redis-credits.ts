import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import { scriptWithChapters } from '../../../quota/calls/library.ts';
import type { RedisConnection } from '../../../redis/redis-connection.ts';
import { redisKeys } from '../../../redis/redis-keys.ts';
import { replyOrAway, replyOrUndefined } from '../../../redis/redis-reply.ts';
import type { StoreFailure } from '../../../request/limit/store/quota-store.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { FailedHour } from '../../../usage/read/failed-units.ts';
import { type CreditStore, parseCredits } from './credit-store.ts';
import { type CreditCall, creditField, type GivenBack } from './give-back.ts';
import { creditKeys } from './redis-keys.ts';

const script = scriptWithChapters(readFileSync(new URL('give-back.lua', import.meta.url), 'utf8'));

/** Keeps the credits of a key in Redis, in the same slot of a Cluster as the counts of the key. */
export function createRedisCredits(
  redis: RedisConnection,
  bounds: Pick<Bounds, 'storePatientDeadlineMs' | 'windowsMs' | 'creditsShownMax' | 'creditHoursPerCallMax'>,
): CreditStore {
  const { commands: client, prefix } = redis;
  const { storePatientDeadlineMs: deadlineMs, windowsMs, creditHoursPerCallMax: hoursMax } = bounds;
  client.defineCommand('giveBack', { numberOfKeys: 2, lua: script });

  return {
    async giveBack({ failed, ...call }) {
      const units = { day: 0, month: 0 };
      let failedUnits = 0;
      for (let from = 0; from < failed.length; from += hoursMax) {
        const given = await giveBackHours({ ...call, failed: failed.slice(from, from + hoursMax) });
        if (given.kind === 'failed') return given;
        failedUnits += given.failedUnits;
        units.day += given.units.day;
        units.month += given.units.month;
      }
      return { kind: 'given', failedUnits, units };
    },
    read: (keyIds) =>
      Promise.all(
        keyIds.map(async (keyId) => {
          const name = creditsName(keyId);
          const last = await replyOrUndefined(redis, [name], () => client.hget(name, 'last'), deadlineMs);
          return last === undefined ? undefined : parseCredits(last ?? '');
        }),
      ),
  };

  function creditsName(keyId: string): string {
    return creditKeys.credits.name(prefix, keyId);
  }

  async function giveBackHours({ keyId, failed, run }: CreditCall): Promise<GivenBack | StoreFailure> {
    const names = [redisKeys.quota.name(prefix, keyId), creditsName(keyId)] as const;
    const args = [
      ...[run.isDryRun ? 1 : 0, run.name, run.fromMs, run.toMs, run.oldestHour, run.keptUntilMs],
      ...[windowsMs.minute, windowsMs.day, windowsMs.month, bounds.creditsShownMax],
      ...failed.flatMap((hour) => [creditField(hour), packMinutes(hour)]),
    ];
    const call = async (): Promise<GivenBack> => {
      const [, failedUnits, day, month] = await client.giveBack(...names, ...args.map(String));
      return { kind: 'given', failedUnits, units: { day, month } };
    };
    const reply = await replyOrAway(redis, names, call, deadlineMs);
    return reply.kind === 'given' ? reply : { ...reply, kind: 'failed' };
  }
}

function packMinutes({ minutes }: FailedHour): string {
  return minutes.map(({ minute, units }) => `${minute} ${units}`).join(' ');
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    giveBack(
      counts: string,
      credits: string,
      ...args: string[]
    ): Result<[nowMs: number, failed: number, day: number, month: number], Context>;
  }
}
