import type { Route } from '../../api/route.ts';
import { banAndGrantRoutes } from './ban-and-grant.ts';
import type { KeyChangeSources } from './change-sources.ts';
import { editRoutes } from './edit-routes.ts';
import { issueKeyRoute } from './issue-key.ts';
import { reportedChangeRoute } from './reported-change.ts';
import { secretRoutes } from './secret-routes.ts';

/** The routes that change keys: their definitions and secrets where they are in the directory, their bans and grants wherever. */
export function createChangeRoutes(sources: KeyChangeSources): readonly Route[] {
  return [
    issueKeyRoute(sources),
    ...editRoutes(sources),
    ...secretRoutes(sources),
    ...banAndGrantRoutes(sources),
    reportedChangeRoute(sources),
  ];
}
