import type { SettingsMessage } from '../../config/settings-message.ts';
import type { Happening } from '../../fleet/event-text.ts';
import type { ProcessMetrics } from '../../observe/metrics/process-metrics.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Counted, ServingProcess } from '../served.ts';

/** What a worker does until it listens. */
export type StartPhase = 'loads its code' | 'reads its settings' | 'opens its socket';

/** Messages from a supervisor to a worker. They arrive in order. */
export type ToWorker =
  /** The first message. */
  | {
      readonly kind: 'start';
      /** From 1. */
      readonly worker: number;
      readonly settings: SettingsMessage;
      readonly bounds: Bounds;
      /** Secret of the TLS session tickets. All workers have the same, so each worker resumes the sessions of all. */
      readonly ticketSecret: Uint8Array;
    }
  /** Sent with the worker's own socket. */
  | { readonly kind: 'listen' }
  /** Sent with the socket of an ended worker. The worker accepts its connections until `give_back`. */
  | { readonly kind: 'accept_for'; readonly worker: number }
  | { readonly kind: 'give_back'; readonly worker: number }
  | { readonly kind: 'settings'; readonly settings: SettingsMessage }
  /** The worker answers with `metrics`. */
  | { readonly kind: 'ask_metrics' }
  /** The worker finishes its requests in flight and ends. */
  | { readonly kind: 'drain' };

/** Messages from a worker to its supervisor. */
export type FromWorker =
  /** The next phase of the worker's start has begun. */
  | { readonly kind: 'phase'; readonly phase: Exclude<StartPhase, 'loads its code'> }
  | { readonly kind: 'listens' }
  /** The worker cannot start and ends. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Sent every `workerReportIntervalMs`, and before the worker ends. */
  | { readonly kind: 'report'; readonly process: ServingProcess; readonly counted: Counted }
  | { readonly kind: 'event'; readonly happening: Happening }
  | { readonly kind: 'metrics'; readonly metrics: ProcessMetrics };
