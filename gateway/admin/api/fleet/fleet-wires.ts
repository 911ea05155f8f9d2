import { eventGroups } from '../../../fleet/event-text.ts';
import { cursor, instant, queryOf, someOf, wholeNumber } from '../../../shared/schema/query-parameters.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { settingsShown } from '../../settings/settings-view.ts';
import { defineWire } from '../wire.ts';
import { changesPage, eventKinds, eventsPage } from './changes-view.ts';
import { fleetState } from './state-view.ts';
import { upstreamsPage } from './upstreams-view.ts';
export const getSettingsWire = defineWire({
  method: 'GET',
  path: '/settings',
  operationId: 'getSettings',
  tag: 'Configuration',
  summary: 'The effective configuration',
  description:
    'Every setting, including defaults and without secrets. The order is always the same, so that two responses can be compared. Each key adds about 200 octets to the response.',
  answers: { 200: { description: 'The present settings.', schema: settingsShown } },
});

export const getStateWire = defineWire({
  method: 'GET',
  path: '/state',
  operationId: 'getState',
  tag: 'Fleet',
  summary: 'The state of the gateway',
  description:
    'The health of the fleet, every process, and the configuration, store and certificates of the process that answers.',
  answers: { 200: { description: 'The state.', schema: fleetState } },
});

export const listUpstreamsWire = defineWire({
  method: 'GET',
  path: '/upstreams',
  operationId: 'listUpstreams',
  tag: 'Fleet',
  summary: 'The upstreams',
  description:
    'Every upstream with its targets, as each process sees them. The first upstream is the default.',
  answers: { 200: { description: 'The upstreams.', schema: upstreamsPage } },
});

export const listChangesWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/changes',
    operationId: 'listChanges',
    tag: 'Configuration',
    summary: 'The record of changes',
    description:
      'Changes of keys, reloads of the configuration with their changes to the tokens of this API, and failed reloads, the newest first. If several processes report a change of the same files within a minute, the list has one entry. The last 10,000 changes are kept for 90 days, or without Redis as long as the process runs.',
    query: pageOf(bounds.changesPerPageMax),
    answers: { 200: { description: 'The changes.', schema: changesPage } },
  });

export const listEventsWire = (bounds: Bounds) =>
  defineWire({
    method: 'GET',
    path: '/events',
    operationId: 'listEvents',
    tag: 'Fleet',
    summary: 'Recent events',
    description:
      'Bans and their ends, changes of keys, outages of Redis, unhealthy targets, expiring certificates, pauses of the usage record, and reloads, the newest first. An event that several processes report is listed once. An outage that has ended is one event, with its beginning and its end. The last 2,000 events are kept for 7 days, or without Redis as long as the process runs. If many events of one kind occur at the same time, the first events are listed, and one entry counts the other events.',
    query: pageOf(bounds.eventsPerPageMax).extend({
      kind: someOf([...eventGroups, ...eventKinds])
        .optional()
        .describe(
          'Kinds of events, separated by commas. `incident` stands for all failures, `ban` for bans and their ends, and `change` for changes that an operator made. An outage that has ended also matches the kind of its beginning.',
        ),
      from: instant()
        .optional()
        .describe('Only events that had not ended before this time. A date means 00:00 UTC.'),
      to: instant().optional().describe('Only events that began before this time.'),
    }),
    answers: { 200: { description: 'The events.', schema: eventsPage } },
  });

/** The query parameters of `/events` and `/changes`, which are lists with pages. */
function pageOf(limitMax: number) {
  return queryOf({
    limit: wholeNumber(1, limitMax).default(50).describe('The largest number of entries.'),
    after: cursor(/^\d{1,15}-\d{1,15}$/)
      .optional()
      .describe('The `next` of the previous page.'),
  });
}
