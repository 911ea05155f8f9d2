import type { Logger } from 'pino';
import type { Route } from '../../admin/api/route.ts';
import type { AskThread } from '../../admin/api/thread-routes.ts';
import type { KeySources } from '../../admin/keys/key-sources.ts';
import type { Change, KeyChange } from '../../fleet/changes.ts';
import type { FlushFleet } from '../../fleet/flush/flush-fleet.ts';
import type { Notice } from '../../fleet/kinds/kinds.ts';
import type { PartState } from '../../fleet/process-state.ts';
import type { Family } from '../../observe/metrics/metric-families.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { Limiter } from '../../request/limit/limiter.ts';
import type { Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Usage } from '../../usage/usage.ts';
import type { processParts } from '../lists/running.ts';

/** The part of a capability that serves operators. Each member is optional. */
export interface OperatorsPart {
  readonly routes?: readonly Route[];
  readonly families?: readonly Family[];
  /** What the routes of the capability in the reading thread call. */
  readonly lent?: Partial<LentMembers>;
  /** What the capability adds to the state of this gateway. */
  state?(): PartState;
  /** Called once, when the gateway serves requests. */
  start?(): void;
  /** The settings have changed, by a reload or at the date of a plan. */
  settingsChanged?(): void;
  /** Called with each notice of this gateway. @param seenBy the process that observed it, if another process records it */
  onNotice?(notice: Notice, seenBy: string | undefined): void;
  /** Records what is not recorded yet. */
  close?(): void;
  /** Called after `close`, when the last notice is recorded. Sends what is not stored yet. The time for this is limited. */
  flush?(): Promise<void>;
}

/** The parts of capabilities in this process, by the name of the capability. */
export type Capabilities = {
  readonly [Name in keyof typeof processParts]: ReturnType<(typeof processParts)[Name]>;
};

export interface OperatorsSources {
  readonly settings: () => Settings;
  readonly keys: Pick<KeySources, 'settings' | 'directory' | 'bounds'>;
  /** The usage record; undefined when it is switched off. */
  readonly usage: Usage | undefined;
  /** Reads the store's clock, epoch ms. */
  readonly readStoreNowMs: () => Promise<number>;
  readonly limiter: Pick<Limiter, 'storeNowMs' | 'confirmTold'>;
  /** The connection for records; undefined without Redis. */
  readonly records: RedisConnection | undefined;
  readonly processId: string;
  /** Returns the last known plan of a key of the directory. */
  readonly planInDirectory: (keyId: string) => string | undefined;
  /** Sends a request to a route of the reading thread. */
  readonly askThread: AskThread;
  readonly flushFleet: FlushFleet;
  readonly recordKeyChange: (change: KeyChange) => void;
  readonly recordChange: (change: Change) => void;
  readonly recordNotice: (notice: Notice) => void;
  readonly log: Logger;
}

/** Functions of the main thread that the reading thread calls. Arguments and results are plain data. Capabilities add their members. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface LentMembers {}

/** The sources of a capability's routes in the reading thread. */
export interface ReadingSources {
  readonly settings: () => Settings;
  /** The connection of the thread for reads; undefined without Redis. */
  readonly redis: RedisConnection | undefined;
  readonly lent: LentMembers;
  readonly bounds: Bounds;
}

export type OpenReadRoutes = (sources: ReadingSources) => readonly Route[];

export type OpenOperatorsPart = (capabilities: Capabilities, sources: OperatorsSources) => OperatorsPart;
