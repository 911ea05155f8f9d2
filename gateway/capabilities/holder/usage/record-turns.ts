import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import { Shares } from '../../../shared/structures/shares.ts';
import { Turns } from '../../../shared/structures/turns.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { dayMs } from '../../../shared/words/figures.js';

/** The rows of all days. `unread`: the store does not reply. `busy`: too many reads are in progress. */
export type Days<Row> = readonly Row[] | 'unread' | 'busy';

/**
 * Reads the usage record for key holders, one day of one key at a time. For a busy key, the read of one week takes 0.1 s of CPU time. This
 * thread also serves the requests of all clients. After each day of the record, the thread does other work before it reads the next day.
 * Keys take turns, so a key with many reads delays only its own reads. The reads of one key run one after the other.
 */
export class RecordTurns {
  private readonly bounds: Bounds;
  private readonly waiting: Shares;
  private readonly turns: Turns;
  /** For each key with reads in progress, the read that was requested last. */
  private readonly lastReads = new Map<string, Promise<unknown>>();

  constructor(bounds: Bounds) {
    this.bounds = bounds;
    this.waiting = new Shares(bounds.ownReadsMax);
    this.turns = new Turns({ holdersMax: 1, pauseMs: 0, restFactor: bounds.ownReadsRestFactor });
  }

  /** @param client the read ends early when the client no longer waits for the response */
  async readDays<Row>(
    keyId: string,
    client: { readonly isAnswerable: boolean },
    period: Period,
    readDay: (day: Period) => Promise<readonly Row[] | undefined>,
  ): Promise<Days<Row>> {
    if (!this.waiting.take(keyId, 1)) return 'busy';
    const lastMs = performance.now() + this.bounds.ownReadTimeoutMs;
    const readAll = async (): Promise<Days<Row>> => {
      const rows: Row[] = [];
      for (const day of daysIn(period)) {
        if (performance.now() > lastMs || !client.isAnswerable) return 'busy';
        const ofDay = await this.turns.take(keyId, () => readDay(day));
        if (ofDay === undefined) return 'unread';
        rows.push(...ofDay);
      }
      return rows;
    };
    const before = this.lastReads.get(keyId) ?? Promise.resolve();
    // A failed read does not affect later reads.
    const own = before.catch(() => undefined).then(readAll);
    this.lastReads.set(keyId, own);
    try {
      return await own;
    } finally {
      this.waiting.give(keyId, 1);
      if (this.lastReads.get(keyId) === own) this.lastReads.delete(keyId);
    }
  }
}

/** Divides a period into its parts by day, in UTC. */
function daysIn({ fromMs, toMs }: Period): Period[] {
  const first = Math.floor(fromMs / dayMs);
  return Array.from({ length: Math.floor(toMs / dayMs) - first + 1 }, (_, index) => {
    const startMs = (first + index) * dayMs;
    return { fromMs: Math.max(fromMs, startMs), toMs: Math.min(toMs, startMs + dayMs - 1) };
  });
}
