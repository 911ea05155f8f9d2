import { capabilityChartMarks, capabilityWebhookTypes } from '../../capabilities/lists/words.js';

// `fleet/kinds/` defines the events. A browser imports this file, too.

/** In the order of the reference (`config/reference/events.md`). */
export const webhookEventTypes = /** @type {const} */ ([
  'quota.threshold',
  'key.banned',
  'key.unbanned',
  'key.created',
  'key.revoked',
  'key.rotated',
  'key.expiring',
  'secret.leaked',
  'operation.sunset',
  'target.down',
  'target.up',
  'upstream.failing',
  'upstream.well',
  'store.away',
  'store.back',
  'config.rejected',
  'config.reloaded',
  'plan.changed',
  ...capabilityWebhookTypes,
  'usage.paused',
]);

/** @typedef {(typeof webhookEventTypes)[number]} WebhookEventType */

/**
 * From the kind of event that ends an outage to the kind that begins it. If an outage has ended, the list of events contains only its last
 * event.
 */
export const beginOfOutage = /** @type {const} */ ({
  store_back: 'store_away',
  target_healthy: 'target_unhealthy',
  upstream_well: 'upstream_failing',
  recording_resumed: 'recording_paused',
});

/**
 * Short texts for the events that the charts mark. These events can explain a change in the requests.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const chartMarks = {
  reload: 'new configuration',
  reload_failed: 'invalid edit',
  store_away: 'Redis away',
  store_back: 'Redis back',
  store_emptied: 'Redis lost its data',
  target_unhealthy: 'target down',
  target_healthy: 'target back',
  upstream_failing: 'failures of',
  upstream_well: 'end of failures of',
  recording_paused: 'recording paused',
  recording_resumed: 'recording resumed',
  worker_ended: 'worker ended',
  ...capabilityChartMarks,
};
