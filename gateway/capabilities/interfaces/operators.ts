import type { Logger } from 'pino';
import type { LentMembers, ReadSources } from '../../admin/api/read-sources.ts';
import type { Route } from '../../admin/api/route.ts';
import type { AskThread } from '../../admin/api/thread-routes.ts';
import type { KeySources } from '../../admin/keys/key-sources.ts';
import type { Change, KeyChange } from '../../fleet/changes.ts';
import type { FlushFleet } from '../../fleet/flush/flush-fleet.ts';
import type { Notice } from '../../fleet/kinds/kinds.ts';
import type { PartState } from '../../fleet/process-state.ts';
import type { Family } from '../../observe/metrics/metric-families.ts';
import type { MetricData } from '../../observe/metrics/metric-registries.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { Limiter } from '../../request/limit/limiter.ts';
import type { Settings } from '../../shared/model.ts';
import type { Usage } from '../../usage/usage.ts';
import type { ProcessPart, ProcessSources } from './running.ts';

/** The part of a capability that serves operators. Each member is optional. */
export interface OperatorsPart {
  /** Makes the routes of the admin API, at the first request to it. */
  routes?(): Promise<readonly Route[]>;
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

/** The functions that open the parts of a process, by the name of the capability. */
type Openers = Readonly<Record<string, (sources: ProcessSources) => ProcessPart>>;

export type Opened<Parts extends Openers> = { readonly [Name in keyof Parts]: ReturnType<Parts[Name]> };

export interface OperatorsSources {
  readonly settings: () => Settings;
  readonly keys: Pick<KeySources, 'settings' | 'directory' | 'leakOf' | 'nowMs' | 'bounds'>;
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
  /** Reads the metrics of all processes of this gateway, as in `/metrics`. */
  readonly readMetrics: () => Promise<readonly MetricData[]>;
  readonly log: Logger;
}

export type OpenOperatorsPart<Parts extends Openers> = (
  capabilities: Opened<Parts>,
  sources: OperatorsSources,
) => OperatorsPart;

export type LoadReadRoute = (sources: ReadSources) => Promise<Route>;
