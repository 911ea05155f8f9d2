import type { SettingsMessage } from '../../config/loader/settings-message.ts';
import type { KeyChange } from '../../fleet/changes.ts';
import type { Notice } from '../../fleet/kinds/kinds.ts';
import type { ProcessMetrics } from '../../observe/metrics/process-metrics.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { OwnMemory } from '../own-memory.ts';
import type { Counted, ServingProcess } from '../served.ts';

/** The phases of a worker's start. */
export type StartPhase = 'loads its code' | 'reads its settings' | 'opens its socket';

/** Messages from a supervisor to a worker. The messages arrive in the order in which they are sent. */
export type ToWorker =
  /** The first message. */
  | {
      readonly kind: 'start';
      /** From 1. */
      readonly worker: number;
      readonly settings: SettingsMessage;
      readonly bounds: Bounds;
      /** The secret for TLS session tickets. All workers have the same secret, so each worker can resume the sessions of all workers. */
      readonly ticketSecret: Uint8Array;
    }
  /** Message with the worker's own socket. */
  | { readonly kind: 'listen' }
  /**
   * Message with the socket of an exited worker. The worker accepts connections from this socket until the supervisor sends `give_back`.
   */
  | { readonly kind: 'accept_for'; readonly worker: number }
  | { readonly kind: 'give_back'; readonly worker: number }
  | { readonly kind: 'settings'; readonly settings: SettingsMessage }
  /** Makes the worker send its unsent counts (`Stores.sendCounts`), and then its report. */
  | { readonly kind: 'send_counts'; readonly flush: number }
  /** Requests the worker's metrics. */
  | { readonly kind: 'ask_metrics' }
  /** Calls a function of the worker's memory. */
  | {
      readonly kind: 'ask_memory';
      readonly number: number;
      readonly name: keyof OwnMemory;
      readonly args: readonly unknown[];
    }
  /** After this message, the worker finishes its requests in flight and exits. */
  | { readonly kind: 'drain' };

/** Messages from a worker to its supervisor. */
export type FromWorker =
  /** Reports that the worker's start has entered this phase. */
  | { readonly kind: 'phase'; readonly phase: Exclude<StartPhase, 'loads its code'> }
  | { readonly kind: 'listens' }
  /** The worker could not start. The supervisor kills the worker's process. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The report that a worker sends every `workerReportIntervalMs` and before it exits. */
  | { readonly kind: 'report'; readonly process: ServingProcess; readonly counted: Counted }
  | { readonly kind: 'event'; readonly notice: Notice }
  /** The holder of a key has changed the key. */
  | { readonly kind: 'key_changed'; readonly change: KeyChange }
  | { readonly kind: 'metrics'; readonly metrics: ProcessMetrics }
  /** The result of a call of the worker's memory. */
  | { readonly kind: 'memory'; readonly number: number; readonly value: unknown };
