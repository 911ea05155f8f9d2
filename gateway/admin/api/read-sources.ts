import type { Changes } from '../../fleet/changes.ts';
import type { Events } from '../../fleet/events.ts';
import type { Presence } from '../../fleet/presence.ts';
import type { DeliveryQueue } from '../../notify/queue/delivery-queue.ts';
import type { KeyDetailSources } from '../keys/key-sources.ts';

/**
 * The data sources of the routes in the reading thread. The reading thread has its own connections for these sources.
 */
export interface ReadSources {
  readonly keys: KeyDetailSources;
  readonly events: Pick<Events, 'read'>;
  readonly changes: Pick<Changes, 'read'>;
  readonly presence: Pick<Presence, 'read'>;
  readonly deliveries: { readonly queue: Pick<DeliveryQueue, 'list' | 'counts'> };
}
