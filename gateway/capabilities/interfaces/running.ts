import type { Logger } from 'pino';
import type { Change } from '../../quota/adjust.ts';
import type { QuotaState } from '../../quota/hash.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { Decision, Key, Operation, PlanStates, Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/** The part of a capability that runs in each process of the gateway. Each member is optional. */
export interface ProcessPart {
  /** A process serves no request before this promise resolves. */
  readonly started?: Promise<void>;
  /**
   * Makes the function that gets each decision about a request of a key, before the response. Each snapshot has functions of its own.
   * `units` is the cost of the request.
   */
  decisionObserver?(settings: Settings): DecisionObserver;
  /** What the processes have decided about plans; undefined without a decision. */
  planStates?(): PlanStates | undefined;
  /** Calls the listener when `planStates` has changed. @returns a function that removes the listener */
  onPlanStates?(listener: () => void): () => void;
  /** The figures of plans in responses, by the name of the plan. */
  planFigures?(): ReadonlyMap<string, PlanFigures>;
  /** Reads the members of keys in responses; undefined for a key whose store does not reply. No promise rejects. */
  readKeyMembers?(keyIds: readonly string[]): Promise<readonly (KeyMembers | undefined)[]>;
  /** The configuration has changed. */
  reloaded?(): void;
  /** Sends what is not stored yet. The time for this is limited. */
  flush?(): Promise<void>;
}

export interface ProcessSources {
  /** The connection for records; undefined without Redis. */
  readonly redis: RedisConnection | undefined;
  readonly counts: CountsOfKeys;
  readonly settings: () => Settings;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly log: Pick<Logger, 'warn'>;
  readonly bounds: Bounds;
}

/** The counts of keys, which the limiter keeps. */
export interface CountsOfKeys {
  /** The connection to the counts in Redis; undefined if the counts are in memory. */
  readonly redis: RedisConnection | undefined;
  /** Resolves when the store of the counts is connected or its start timeout has passed. */
  readonly started: Promise<void>;
  /** Whether the part of the store with the counts of a key is available. */
  isThere(keyId: string): boolean;
  /** Changes the counts of a key in memory. */
  adjustInMemory(keyId: string, changeOf: (counts: Readonly<QuotaState>) => Change): void;
  /** Makes the store decide the next request of a key. */
  forgetRefusalsOf(keyId: string): void;
}

export type DecisionObserver = (request: DecidedRequest, units: number) => void;

/** The part of a decided request that observers read. */
export interface DecidedRequest {
  /** The key, with the first digits of the digest of the presented secret. */
  readonly key: Key & { readonly digestStart: string };
  /** The client's address. */
  readonly address: string;
  readonly decision: Decision;
  /** The operation; absent if no operation matches. */
  readonly offered?: { readonly operation: Operation } | undefined;
}

// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanFigures {}
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface KeyMembers {}
