import { Turns } from '../../shared/structures/turns.ts';
import type { ProcessSources } from '../interfaces/running.ts';
import { createSigningKeys } from './github/signing-keys.ts';
import { leakReportKeys } from './redis-keys.ts';
import { type Applied, applyReport, type ReportTerms } from './report/apply-report.ts';
import type { ReportedSecret } from './report/read-report.ts';
import { createReportRoom } from './report/report-room.ts';
import { createSlices, type Slices } from './report/slices.ts';

export type Reports = ReturnType<typeof createReports>;

/** Applies reports of leaked secrets in a process. */
export function createReports({ counts, directory, blocked, nowMs, log, bounds }: ProcessSources) {
  // The work on a report has pauses of its own (`slices.ts`), so the next report of a reporter follows without a pause.
  const turns = new Turns({ holdersMax: bounds.leakReportsAtOnceMax, pauseMs: 0 });

  return {
    bucket: counts.openBucket('leaks', leakReportKeys.leaks.name),
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
  };
}
