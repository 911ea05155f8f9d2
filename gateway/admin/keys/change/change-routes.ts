import type { Route } from '../../api/route.ts';
import { banAndGrantRoutes } from './ban-and-grant.ts';
import type { KeyChangeSources } from './change-sources.ts';
import { editRoutes } from './edit-routes.ts';
import { importRoute } from './import-route.ts';
import { issueKeyRoute } from './issue-key.ts';
import { reportedChangeRoute } from './reported-change.ts';
import { secretRoutes } from './secret-routes.ts';
import { whoamiRoute } from './whoami.ts';

/**
 * The routes that change keys: their definitions and secrets where they are in the directory, their bans and grants wherever.
 * And those that say whose a secret is, and put many keys into the directory.
 */
export function createChangeRoutes(sources: KeyChangeSources): readonly Route[] {
  return [
    issueKeyRoute(sources),
    ...editRoutes(sources),
    ...secretRoutes(sources),
    ...banAndGrantRoutes(sources),
    whoamiRoute(sources),
    importRoute(sources),
    reportedChangeRoute(sources),
  ];
}
