import type { AdminResponse } from '../../admin/admin-response.ts';
import type { ThreadRequest } from '../../admin/api/thread-routes.ts';
import type { SettingsMessage } from '../../config/settings-message.ts';
import type { Changes } from '../../fleet/changes.ts';
import type { Events } from '../../fleet/events.ts';
import type { Presence } from '../../fleet/presence.ts';
import type { DirectoryStore } from '../../keys/directory/store/directory-store.ts';
import type { ReadStatuses } from '../../request/limit/read-statuses.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { UsageStore } from '../../usage/store/usage-store.ts';
import type { UnsentSource } from '../../usage/usage-reader.ts';

/** What the reading thread is started with. */
export interface ReadingData {
  readonly bounds: Bounds;
  /** Undefined: nothing is recorded. */
  readonly keptDays: number | undefined;
  readonly hasDirectory: boolean;
}

/** What only the thread that serves keys knows. The reading thread asks for it, by name. Arguments and results are plain data. */
export interface Lent {
  readonly unsent: UnsentSource['unsent'];
  readonly lastSeen: UnsentSource['lastSeen'];
  readonly readEvents: Events['read'];
  readonly readChanges: Changes['read'];
  readonly readProcesses: Presence['read'];
  /** Without Redis, what is in memory. */
  readonly readStatuses: ReadStatuses;
  readonly readRecords: UsageStore['read'];
  readonly readActive: UsageStore['active'];
  readonly readLastSeen: UsageStore['lastSeen'];
  readonly readKeys: DirectoryStore['readMany'];
  readonly readKeyIds: DirectoryStore['page'];
}

/** What is kept of keys: in Redis, or in the memory of the thread that serves keys. */
export type Kept = Pick<
  Lent,
  'readStatuses' | 'readRecords' | 'readActive' | 'readLastSeen' | 'readKeys' | 'readKeyIds'
>;

export type ToReading =
  /** Leads to the settings in force: sent before a request when they are others than at the one before. */
  | { readonly kind: 'settings'; readonly message: SettingsMessage }
  /** `nowMs`: the store's clock, epoch ms. */
  | {
      readonly kind: 'request';
      readonly number: number;
      readonly nowMs: number;
      readonly request: ThreadRequest;
    }
  | { readonly kind: 'reply'; readonly number: number; readonly value: unknown };

export type FromReading =
  | {
      readonly kind: 'response';
      readonly number: number;
      readonly response: Omit<AdminResponse, 'body' | 'onWritten'>;
      readonly body: Uint8Array;
    }
  /** A bug ended a request. */
  | { readonly kind: 'failed'; readonly number: number; readonly error: unknown }
  | {
      readonly kind: 'call';
      readonly number: number;
      readonly name: keyof Lent;
      readonly args: readonly unknown[];
    };
