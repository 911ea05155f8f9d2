import type { Logger } from 'pino';
import type { KeyDirectory } from '../../keys/directory/key-directory.ts';
import type { BlockedSecrets } from '../../keys/leaks/blocked/blocked-secrets.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { CountsOfKeys } from '../../request/limit/counts-of-keys.ts';
import type { KeyMembers, PlanFigures, PlanStates, Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Usage } from '../../usage/usage.ts';
import type { RequestHooks } from './request.ts';

/** The part of a capability that runs in each process of the gateway. Each member is optional. */
export interface ProcessPart {
  /** A process serves no request before this promise resolves. */
  readonly started?: Promise<void>;
  /** The hooks of the request path for a snapshot with these settings. */
  hooks?(settings: Settings): Partial<RequestHooks>;
  /** What the processes have decided about plans; undefined without a decision. */
  planStates?(): PlanStates | undefined;
  /** Calls the listener when `planStates` has changed. @returns a function that removes the listener */
  onPlanStates?(listener: () => void): () => void;
  /** The figures of plans in responses, by the name of the plan. */
  planFigures?(): ReadonlyMap<string, PlanFigures>;
  /** Reads the members of keys in responses; undefined for a key whose store does not reply. No promise rejects. */
  readKeyMembers?(keyIds: readonly string[]): Promise<readonly (KeyMembers | undefined)[]>;
  /** Counters since the start. Their names differ from the names of other capabilities. `/metrics` shows their sums over all processes (`ObservedState`). */
  counts?(): Readonly<Record<string, number>>;
  /** The configuration has changed. */
  reloaded?(): void;
  /** Sends what is not stored yet. The time for this is limited. */
  flush?(): Promise<void>;
}

export interface ProcessSources {
  /** The connection for records; undefined without Redis. */
  readonly redis: RedisConnection | undefined;
  readonly counts: CountsOfKeys;
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory: KeyDirectory | undefined;
  /** The leaked secrets of the configuration. */
  readonly blocked: BlockedSecrets;
  /** The usage record; undefined when it is switched off. */
  readonly usage: Usage | undefined;
  readonly settings: () => Settings;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  readonly bounds: Bounds;
}
