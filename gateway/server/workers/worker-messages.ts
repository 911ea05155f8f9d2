import type { SettingsMessage } from '../../config/settings-message.ts';
import type { Happening } from '../../fleet/event-text.ts';
import type { ProcessMetrics } from '../../observe/metrics/process-metrics.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { Counted, ServingProcess } from '../served.ts';

/** What a supervisor tells a worker; they arrive in the order in which they were sent. */
export type ToWorker =
  /** The first message. */
  | {
      readonly kind: 'start';
      /** From 1. */
      readonly worker: number;
      readonly settings: SettingsMessage;
      readonly bounds: Bounds;
      /** For the session tickets of TLS: the same for all workers, so that each resumes the sessions of all. */
      readonly ticketSecret: Uint8Array;
    }
  /** With the worker's own socket. */
  | { readonly kind: 'listen' }
  /** With the socket of a worker that has ended: its connections are accepted until `give_back`. */
  | { readonly kind: 'accept_for'; readonly worker: number }
  | { readonly kind: 'give_back'; readonly worker: number }
  | { readonly kind: 'settings'; readonly settings: SettingsMessage }
  /** To be answered with `metrics`. */
  | { readonly kind: 'ask_metrics' }
  /** Finish the requests in flight, and end. */
  | { readonly kind: 'drain' };

/** What a worker tells its supervisor. */
export type FromWorker =
  | { readonly kind: 'listens' }
  /** It cannot start, and ends. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Once in `workerReportIntervalMs`, and as its last words. */
  | { readonly kind: 'report'; readonly process: ServingProcess; readonly counted: Counted }
  | { readonly kind: 'event'; readonly happening: Happening }
  | { readonly kind: 'metrics'; readonly metrics: ProcessMetrics };
