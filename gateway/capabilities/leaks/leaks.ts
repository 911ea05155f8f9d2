import type { ProcessPart, ProcessSources } from '../interfaces/running.ts';
import { answerLeakReport } from './github-report.ts';
import { createReports, type Reports } from './reports.ts';

interface Leaks extends ProcessPart {
  readonly reports: Reports;
}

/** The part of a process that takes reports of leaked secrets. GitHub sends reports to `leaksPath`. */
export function createLeaks(sources: ProcessSources): Leaks {
  const reports = createReports(sources);
  return {
    reports,
    hooks: ({ leaksPath }) =>
      leaksPath === undefined ? {} : { pages: new Map([[leaksPath, answerLeakReport(reports)]]) },
  };
}
