import type { Logger } from 'pino';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { Settings } from '../../shared/model.ts';
import { Turns } from '../../shared/structures/turns.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { KeyDirectory } from '../directory/key-directory.ts';
import { type Applied, applyReport, type ReportTerms } from './apply-report.ts';
import { type BlockedSecrets, createBlockedSecrets } from './blocked/blocked-secrets.ts';
import { createMemoryBlockStore } from './blocked/memory-block-store.ts';
import { createRedisBlockStore } from './blocked/redis-block-store.ts';
import { createSigningKeys } from './github/signing-keys.ts';
import type { ReportedSecret } from './read-report.ts';
import { createReportRoom } from './report-room.ts';
import { createSlices, type Slices } from './slices.ts';

export type Leaks = ReturnType<typeof createLeaks>;

/** Creates the part of a process that receives reports of leaked secrets. */
export function createLeaks({
  redis,
  directory,
  settings,
  nowMs,
  log,
  bounds,
}: {
  /** Without Redis, this process keeps the leaks. */
  readonly redis: RedisConnection | undefined;
  readonly directory: KeyDirectory | undefined;
  readonly settings: () => Pick<Settings, 'keys'>;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly log: Logger;
  readonly bounds: Bounds;
}) {
  const store = redis === undefined ? createMemoryBlockStore() : createRedisBlockStore({ redis, bounds });
  const blocked: BlockedSecrets = createBlockedSecrets({
    store,
    isInConfiguration: (digest) => settings().keys.find(digest) !== undefined,
    bounds,
  });
  // The work on a report has pauses of its own (`slices.ts`), so the next report of a reporter follows without a pause.
  const turns = new Turns({ holdersMax: bounds.leakReportsAtOnceMax, pauseMs: 0 });

  return {
    blocked,
    signingKeys: createSigningKeys({ log, bounds }),
    room: createReportRoom(bounds),
    /**
     * Runs work on a report when it is the reporter's turn. A reporter has one turn at a time, so reports of one reporter wait for each
     * other. The work divides itself into slices.
     */
    async inTurn<T>(reporter: string, work: (slices: Slices) => Promise<T>): Promise<T> {
      const done = await turns.take(reporter, async () => ({ result: await work(createSlices(bounds)) }));
      // Work never leaves the queue before its turn, because nothing calls `leave`.
      if (done === undefined) throw new Error('a report left the queue');
      return done.result;
    },
    apply(reported: readonly ReportedSecret[], terms: ReportTerms): Promise<Applied> {
      return applyReport(reported, terms, { directory, blocked, nowMs, bounds });
    },
    close: blocked.close,
  };
}
