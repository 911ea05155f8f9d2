import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisConnection } from '../../../redis/redis-connection.ts';
import { redisKeys } from '../../../redis/redis-keys.ts';
import type { Away } from '../../../redis/redis-reply.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** Runs commands with these Redis keys, with a deadline. Never rejects. */
export type Attempt = <T extends { readonly kind: string }>(
  names: readonly string[],
  call: () => Promise<T>,
  deadlineMs?: number,
) => Promise<T | Away>;

/**
 * The hash tags of the copies. Their slots (13907, 9842, 5649 and 1584) are in different quarters of a Cluster's slots, so a failover of
 * one server cannot revert all copies.
 */
const copies = ['0', '1', '2', '3'] as const;
const issuedMark = 'issued';
const unknownMark = 'unknown';

/**
 * Tells whether Tollgate issued every secret of the directory. If it did, a secret with a wrong checksum is not in the directory.
 *
 * Redis has four copies of a mark, which is `issued` or `unknown <random characters>`. Only an empty directory gets the mark `issued`. A
 * directory without a mark may be from an earlier version, so its secrets have an unknown form.
 *
 * A process relies on `issued` for `directoryMarkLeaseMs` after it began to read the copies. An import of digests first changes all copies,
 * then waits for `directoryMarkWaitMs`, and then writes its first key. By then, no process relies on the earlier mark. A process that
 * cannot read all copies looks up every secret.
 *
 * A server and its replicas apply the mark before the imported key. A server that has the key after a failover therefore also has the mark.
 * In a Cluster, the key may be on another server than a copy, so all four copies must agree.
 */
export function createFormMarks({
  redis,
  attempt,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly attempt: Attempt;
  readonly bounds: Bounds;
}) {
  const { commands: client, prefix } = redis;
  const names = copies.map((copy) => redisKeys.directoryForm.name(prefix, copy));
  const idsName = redisKeys.directoryIds.name(prefix);
  /** Monotonic, because the clock of the process may be set back. */
  let leaseEndsMs = Number.NEGATIVE_INFINITY;
  let readBeganMs = Number.NEGATIVE_INFINITY;
  let isReading = false;
  let connections = 0;
  /** The copies for which this process has waited. */
  let waitedFor: string | undefined;
  let announcing: Promise<Announced | Away> | undefined;

  // The new server may have a mark that an import wrote there some time ago.
  redis.on('ready', connected);
  redis.on('nodes', connected);

  return {
    /** Reads the copies in the background, at most once every `directoryMarkReadMs`. False while the process has no recent mark. */
    isAllIssued(): boolean {
      const nowMs = performance.now();
      if (!isReading && nowMs - readBeganMs >= bounds.directoryMarkReadMs) void renew(nowMs);
      return nowMs < leaseEndsMs;
    },
    /** False without a reply. */
    async confirmAllIssued(): Promise<boolean> {
      const reply = await readOrClaim();
      return reply.kind === 'read' && reply.isAllIssued;
    },
    /** Marks an empty directory as `issued`, before its first issued key. Without a reply there is no mark, which is safe. */
    async claim(): Promise<void> {
      await readOrClaim();
    },
    /** Marks the directory as `unknown`. After `announced`, every process looks up every secret. */
    announceUnknown(): Promise<Announced | Away> {
      announcing ??= announce().finally(() => {
        announcing = undefined;
      });
      return announcing;
    },
  };

  function connected(): void {
    connections++;
    endLease();
  }

  function endLease(): void {
    leaseEndsMs = Number.NEGATIVE_INFINITY;
  }

  async function renew(beganMs: number): Promise<void> {
    isReading = true;
    readBeganMs = beganMs;
    const connection = connections;
    const reply = await readOrClaim();
    isReading = false;
    if (reply.kind === 'away') return;
    if (reply.isAllIssued && connection === connections) leaseEndsMs = beganMs + bounds.directoryMarkLeaseMs;
    else endLease();
  }

  function readOrClaim() {
    return attempt(
      [...names, idsName],
      async () => {
        const marks = await readMarks();
        const missing = names.filter((_, index) => marks[index] === null);
        const hasOther = marks.some((mark) => mark !== null && mark !== issuedMark);
        if (missing.length === 0 || hasOther) return { kind: 'read', isAllIssued: !hasOther } as const;
        // If some copies are `issued`, the process that claimed the empty directory died before it wrote the others.
        const isClaimed = missing.length < names.length || (await client.zcard(idsName)) === 0;
        if (!isClaimed) return { kind: 'read', isAllIssued: false } as const;
        const written = await Promise.all(missing.map((name) => client.set(name, issuedMark, 'NX')));
        return { kind: 'read', isAllIssued: written.every((reply) => reply === 'OK') } as const;
      },
      Math.min(bounds.directoryLookUpDeadlineMs, bounds.storePatientDeadlineMs),
    );
  }

  function readMarks(): Promise<(string | null)[]> {
    return redis.gather(() => Promise.all(names.map((name) => client.get(name))));
  }

  /** Waits again when another import has changed the copies meanwhile. */
  async function announce(): Promise<Announced | Away> {
    for (let waits = 0; waits <= bounds.directoryMarkWaitsMax; waits++) {
      const marked = await attempt(names, async () => {
        const marks = await readMarks();
        if (marks.every((mark) => mark?.startsWith(unknownMark))) return { kind: 'marked', marks } as const;
        const mark = `${unknownMark} ${randomBytes(6).toString('base64url')}`;
        await Promise.all(names.map((name) => client.set(name, mark)));
        return { kind: 'marked', marks: names.map(() => mark) } as const;
      });
      if (marked.kind === 'away') return { ...marked, mayHaveRun: false };
      const marks = marked.marks.join();
      if (marks === waitedFor) return { kind: 'announced' };
      endLease();
      await sleep(bounds.directoryMarkWaitMs);
      waitedFor = marks;
    }
    return { kind: 'away', mayHaveRun: false, reason: 'other imports changed the mark of the directory' };
  }
}

interface Announced {
  readonly kind: 'announced';
}
