import type { OperatorsPart, OperatorsSources } from '../interfaces/operators.ts';
import type { Credits } from './credits/credits.ts';
import { createRecordedRuns } from './run/recorded-runs.ts';

/** Serves `POST /makegood`, and records its runs. */
export function makegoodOperators(credits: Credits, sources: OperatorsSources): OperatorsPart {
  const runs = createRecordedRuns({ record: sources.recordKeyChange, bounds: sources.keys.bounds });
  return {
    async routes() {
      const { makegoodRoute } = await import('./makegood-route.ts');
      return [makegoodRoute(credits, runs, sources)];
    },
    close: runs.close,
  };
}
