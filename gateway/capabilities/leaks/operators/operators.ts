import type { OperatorsPart, OperatorsSources } from '../../interfaces/operators.ts';
import type { Reports } from '../reports.ts';

/** Serves `POST /leaks`. */
export function leaksOperators(reports: Reports, sources: OperatorsSources): OperatorsPart {
  return {
    async routes() {
      const { reportLeaksRoute } = await import('./report-route.ts');
      return [reportLeaksRoute(reports, sources)];
    },
  };
}
