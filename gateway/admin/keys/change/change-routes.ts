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
 * The routes that change definitions and secrets of directory keys, change bans and grants of all keys, import and
 * export keys, and find the key of a secret.
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
