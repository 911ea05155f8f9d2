import type { AdminResponse } from '../../admin/admin-response.ts';
import type { Outage } from '../../admin/api/missing-data.ts';
import type { LentMembers } from '../../admin/api/read-sources.ts';
import type { ThreadRequest } from '../../admin/api/thread-routes.ts';
import type { KeyDetailSources } from '../../admin/keys/key-sources.ts';
import type { SettingsMessage } from '../../config/loader/settings-message.ts';
import type { Changes } from '../../fleet/changes.ts';
import type { Events } from '../../fleet/events.ts';
import type { Presence } from '../../fleet/presence.ts';
import type { DirectoryStore } from '../../keys/directory/store/directory-store.ts';
import type { LeakedSecret } from '../../keys/leaks/blocked/block-store.ts';
import type { ReadStatuses } from '../../request/limit/read-statuses.ts';
import type { PlanFigures } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { UnsentSource } from '../../usage/read/usage-reader.ts';
import type { OwnMemory } from '../own-memory.ts';

/** The start data of the reading thread. */
export interface ReadingData {
  readonly bounds: Bounds;
  /** Undefined when no usage is recorded. */
  readonly keptDays: number | undefined;
  readonly hasDirectory: boolean;
}

/**
 * Functions of the main thread that the reading thread calls. A message contains the name of the function. Arguments and results are plain
 * data. The functions of `OwnMemory` are called without Redis, and while Redis is away.
 */
export interface Lent extends LentMembers, OwnMemory {
  readonly unsent: UnsentSource['unsent'];
  readonly lastSeen: UnsentSource['lastSeen'];
  readonly readEvents: Events['read'];
  readonly readChanges: Changes['read'];
  readonly readProcesses: Presence['read'];
  readonly planFigures: () => ReadonlyMap<string, PlanFigures>;
  readonly readMembers: KeyDetailSources['readMembers'];
  readonly outage: () => Promise<Outage>;
}

/** The records of keys, in Redis or in the main thread's memory. */
export interface Kept extends Pick<OwnMemory, 'readRecords' | 'readActive' | 'readLastSeen'> {
  readonly readStatuses: ReadStatuses;
  /** The key directory, which needs Redis. */
  readonly directory?: Pick<DirectoryStore, 'readMany' | 'page'>;
}

export type ToReading =
  /** A change of the settings. The change is sent before the next request to the thread. `nowMs` is the store's clock, epoch ms. */
  | { readonly kind: 'settings'; readonly message: SettingsMessage; readonly nowMs: number }
  /** The leaked secrets of the configuration have changed. The change is sent before the next request to the thread. */
  | { readonly kind: 'leaks'; readonly leaked: readonly LeakedSecret[] }
  /** `nowMs` is the store's clock, epoch ms. */
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
  /** The error of a request that failed because of a bug. */
  | { readonly kind: 'failed'; readonly number: number; readonly error: unknown }
  | {
      readonly kind: 'call';
      readonly number: number;
      readonly name: keyof Lent;
      readonly args: readonly unknown[];
    };
