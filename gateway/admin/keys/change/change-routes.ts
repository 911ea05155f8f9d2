import { inForceForDirectory, tableIn } from '../../../keys/key-table.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { reportChangeWire } from '../../wires/changes.ts';
import { banAndGrantRoutes } from './ban-and-grant.ts';
import type { KeyChangeSources } from './change-sources.ts';
import { editRoutes } from './edit-routes.ts';
import { importRoute } from './import-route.ts';
import { issueKeyRoute } from './issue-key.ts';
import { reportedLimits } from './key-terms.ts';
import { secretRoutes } from './secret-routes.ts';
import { whoamiRoute } from './whoami.ts';

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

/** `POST /changes` records a change that a command has made in the files of the configuration. */
function reportedChangeRoute({ record, settings, nowMs, bounds }: KeyChangeSources): Route {
  return defineRoute({
    ...reportChangeWire(bounds),
    needs: 'write',
    respond({ body: { action, key, before, after }, author }) {
      const stated = key === undefined ? undefined : tableIn(settings().keys).statedOf(key);
      const inForce = inForceForDirectory(settings(), nowMs());
      const limits = reportedLimits(stated, { before, after }, inForce);
      record({ action, ...author, key, before, after, appliedLimits: limits });
      return { status: 204, body: '' };
    },
  });
}
