import { readFileSync } from 'node:fs';
import { type Redis, ReplyError, type Result } from 'ioredis';
import type { QuotaCall, WindowLengths } from './decide-quota.ts';
import type { QuotaReply, QuotaStore, StoreFailure } from './quota-store.ts';
import { withinDeadline } from './within-deadline.ts';

const script = readFileSync(new URL('./decide-quota.lua', import.meta.url), 'utf8');

/** The counts in Redis, one hash `<prefix>:{<key id>}` per key, decided by `decide-quota.lua`. */
export function createRedisQuotaStore(deps: {
  client: Redis;
  prefix: string;
  lengths: WindowLengths;
  /** A call without a reply by then has failed, though it may have run. */
  deadlineMs: number;
}): QuotaStore {
  const { client, prefix, lengths, deadlineMs } = deps;
  client.defineCommand('decideQuota', { numberOfKeys: 1, lua: script });

  return {
    async decide(calls) {
      if (client.status !== 'ready') return calls.map(() => notConnected);
      // All calls leave in one write; ioredis sends the script itself again when Redis has lost it.
      client.stream.cork();
      const replies = calls.map(run);
      client.stream.uncork();
      return withinDeadline(Promise.all(replies), deadlineMs, () => calls.map(() => late));
    },
  };

  function run(call: QuotaCall): Promise<QuotaReply> {
    const { keyId, limits, bans, requests, unsent } = call;
    // The braces are a hash tag: all of a key lies in one slot of a Redis Cluster.
    const reply = client.decideQuota(
      `${prefix}:{${keyId}}`,
      lengths.minuteMs,
      lengths.dayMs,
      limits.perMinute,
      limits.perDay,
      bans.after,
      bans.withinMs,
      bans.forMs,
      bans.maxMs,
      requests,
      ...(unsent === undefined
        ? []
        : [
            unsent.strikes,
            unsent.minute,
            unsent.minuteUsed,
            unsent.day,
            unsent.dayUsed,
            unsent.bannedUntilMs,
            unsent.banLevel,
          ]),
    );
    return reply.then(toDecided, toFailure);
  }
}

const late: StoreFailure = { kind: 'failed', mayHaveRun: true, reason: 'no reply within the deadline' };
const notConnected: StoreFailure = { kind: 'failed', mayHaveRun: false, reason: 'not connected' };

function toDecided(reply: ScriptReply): QuotaReply {
  const [nowMs, admitted, refused, banned] = reply;
  const [, , , , minute, minuteUsed, day, dayUsed, strikes, strikesFromMs, bannedUntilMs, banLevel] = reply;
  const state = { minute, minuteUsed, day, dayUsed, strikes, strikesFromMs, bannedUntilMs, banLevel };
  return { kind: 'decided', outcome: { nowMs, admitted, refused, banned, state } };
}

/** An error that Redis itself replied with (OOM, READONLY, LOADING …) came before the script's first write. */
function toFailure(error: Error): StoreFailure {
  return { kind: 'failed', mayHaveRun: !(error instanceof ReplyError), reason: error.message };
}

type ScriptReply = [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

declare module 'ioredis' {
  interface RedisCommander<Context> {
    decideQuota(key: string, ...args: number[]): Result<ScriptReply, Context>;
  }
}
