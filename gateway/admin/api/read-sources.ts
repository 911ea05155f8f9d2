import type { Changes } from '../../fleet/changes.ts';
import type { Events } from '../../fleet/events.ts';
import type { Presence } from '../../fleet/presence.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { KeyDetailSources } from '../keys/key-sources.ts';

/** The data sources of the routes in the reading thread, which has connections of its own for the keys. */
export interface ReadSources {
  readonly keys: KeyDetailSources;
  readonly events: Pick<Events, 'read'>;
  readonly changes: Pick<Changes, 'read'>;
  readonly presence: Pick<Presence, 'read'>;
  /** The connection for records; undefined without Redis. */
  readonly redis: RedisConnection | undefined;
  /** What capabilities read in the main thread. */
  readonly lent: LentMembers;
}

/** Functions of the main thread that the reading thread calls. Arguments and results are plain data. Capabilities add their members. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface LentMembers {}
