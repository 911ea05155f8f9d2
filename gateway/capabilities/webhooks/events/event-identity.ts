import { kindOf, type Notice } from '../../../fleet/kinds/kinds.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** The identity by which the reports of several processes are merged into one event of the queue. */
export interface EventIdentity {
  readonly what: readonly unknown[];
  /** How long after the first report further reports are merged; 0: never. */
  readonly mergedWithinMs: number;
  /** Whether a second report by the same process is the same event. If false, it is a new event. */
  readonly isOnce: boolean;
}

/** @param nowMs the store's clock, epoch ms */
export function eventIdentity(notice: Notice, nowMs: number, bounds: Bounds): EventIdentity {
  const { kind } = notice;
  const identity = kindOf(notice).identity(notice);
  switch (identity.kind) {
    case 'once': {
      const { what, untilMs = nowMs } = identity;
      // A process reports the notice later if Redis is away.
      const mergedWithinMs = Math.max(0, untilMs - nowMs) + bounds.noticesMergedAfterEndMs;
      return { what: [kind, ...what], mergedWithinMs, isOnce: true };
    }
    case 'near':
      return { what: [kind, ...identity.what], mergedWithinMs: bounds[identity.within], isOnce: false };
    case 'own':
      return { what: [kind], mergedWithinMs: 0, isOnce: false };
  }
}
