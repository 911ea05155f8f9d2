import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import { type RedisConnection, untilConnected } from '../../../redis/redis-connection.ts';
import { type Away, replyOrAway } from '../../../redis/redis-reply.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { GuardedEdit } from '../guarded-edit.ts';
import type { CountedPeriod, GuardFigures, GuardReport, GuardState } from './decide-guard.ts';
import { guardKeys } from './redis-keys.ts';

const script = readFileSync(new URL('./decide-guard.lua', import.meta.url), 'utf8');

export type GuardStore = ReturnType<typeof createGuardStore>;

interface NumberedReport extends GuardReport {
  /** A report without a reply is sent again with the same number, and the store counts it once. A new report has a larger number. */
  readonly number: number;
}

export interface GuardReply {
  readonly kind: 'replied';
  readonly state: GuardState;
  readonly figures: GuardFigures;
  /** Whether this call has reverted the plan, or ended its revert. */
  readonly hasChanged: boolean;
}

/**
 * The states of guards in Redis, which all processes share, with one hash for each guarded edit. The script `decide-guard.lua` makes the
 * decisions. The promises never reject.
 */
export function createGuardStore({
  redis,
  processId,
  bounds,
}: {
  readonly redis: RedisConnection;
  /** A random id, with which the script finds reports that were sent twice. */
  readonly processId: string;
  readonly bounds: Bounds;
}) {
  const { commands: client, prefix } = redis;
  client.defineCommand('decideGuard', { numberOfKeys: 1, lua: script });

  return {
    /** Resolves when Redis is connected or the start timeout has passed. */
    started: untilConnected(redis, bounds.guardStartTimeoutMs),
    /** Runs calls, whose commands are sent together. */
    together: redis.gather,
    /** Adds counts, decides whether the plan is reverted, and reads the state. */
    report: (edit: GuardedEdit, { known, keysMin, number, periods }: NumberedReport) =>
      call(edit, 'report', known, [processId, number, keysMin, ...periods.flatMap(argumentsOf)]),
    /** Ends a revert. `hasChanged` of the reply is false if the plan is not reverted. @param known the state that the process knows */
    retry: (edit: GuardedEdit, known: GuardState) => call(edit, 'retry', known, [processId, 0, 0]),
    /** Calls the listener when Redis is available again. */
    onReturn(listener: () => void) {
      redis.on('ready', listener);
      redis.on('nodes', listener);
    },
  };

  function call(
    { identity, guard }: GuardedEdit,
    op: 'report' | 'retry',
    { generation, revert }: GuardState,
    rest: readonly (string | number)[],
  ): Promise<GuardReply | Away> {
    const name = guardKeys.guard.name(prefix, identity);
    const run = async () =>
      toReply(
        await client.decideGuard(
          ...[name, op, guard.refusedShareMax, guard.untilMs],
          ...[bounds.guardRequestsMin, bounds.guardSlotMs, bounds.guardSlots],
          ...[bounds.guardKeysPerSlotMax, bounds.guardKeptMs],
          ...[generation, revert?.sinceMs ?? 0, revert?.requests ?? 0, revert?.refused ?? 0],
          ...rest,
        ),
      );
    return replyOrAway(redis, [name], run, bounds.storePatientDeadlineMs);
  }
}

function argumentsOf({ agoMs, counts }: CountedPeriod): (string | number)[] {
  const ofKeys = [...counts].map(([name, { requests, refused }]) => `${name} ${requests} ${refused}`);
  return [Math.round(agoMs), ofKeys.join(' ')];
}

function toReply(reply: readonly number[]): GuardReply {
  const [generation = 0, sinceMs = 0, requestsThen = 0, refusedThen = 0, requests = 0, refused = 0, changed] =
    reply;
  const revert = sinceMs === 0 ? undefined : { sinceMs, requests: requestsThen, refused: refusedThen };
  return {
    kind: 'replied',
    state: { generation, revert },
    figures: { requests, refused },
    hasChanged: changed === 1,
  };
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    decideGuard(...args: readonly (string | number)[]): Result<number[], Context>;
  }
}
