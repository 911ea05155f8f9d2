import type { KeyChange } from '../../../fleet/changes.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { reportChangeWire } from '../../wires/changes.ts';

/** `POST /changes` records a change that a command has made in the files of the configuration. */
export function reportedChangeRoute({
  record,
  bounds,
}: {
  readonly record: (change: KeyChange) => void;
  readonly bounds: Bounds;
}): Route {
  return defineRoute({
    ...reportChangeWire(bounds),
    needs: 'write',
    respond({ body: { action, key, before, after }, token }) {
      record({ action, by: token.name, key, before, after });
      return { status: 204, body: '' };
    },
  });
}
