import type { OperatorsPart, OperatorsSources } from '../../interfaces/operators.ts';
import type { Links } from './links.ts';

/** Serves the routes below `/keys/{id}/links`. */
export function holderOperators(links: Links, sources: OperatorsSources): OperatorsPart {
  return {
    async routes() {
      const { linkRoutes } = await import('./link-routes.ts');
      return linkRoutes(links, sources);
    },
  };
}
