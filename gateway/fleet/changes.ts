import type { RecordsInRedis } from '../redis/redis-client.ts';
import { redisKeys } from '../redis-keys.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { createSharedList, type Listed } from './shared-list.ts';

/** Something that was changed, or that failed to be. */
export interface Change {
  readonly action: 'reload' | 'reload_failed';
  /** Who did it: `file` where the configuration files were edited. */
  readonly by: string;
  /** The versions of the configuration: the one in force until then, and the new one, or the one that is not valid. */
  readonly before: string;
  readonly after?: string;
  /** Why it failed. */
  readonly error?: string;
}

export type RecordedChange = Listed<Change>;

export interface ChangesPage {
  /** False while Redis is away: then only those of this process are known. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly changes: readonly RecordedChange[];
  readonly next?: string;
}

/** The record of changes, which all processes share. */
export interface Changes {
  record(change: Change): void;
  /** @param after the id of the last change of the page before */
  read(options: { readonly limit: number; readonly after?: string }): Promise<ChangesPage>;
  /** Sends what is left to send, and stops. */
  close(): Promise<void>;
}

/** The reload that each process does of the same files is one change. */
export function createChanges({
  bounds,
  ...deps
}: {
  readonly records: RecordsInRedis | undefined;
  readonly processId: string;
  readonly nowMs: () => number;
  readonly bounds: Pick<
    Bounds,
    | 'changesMax'
    | 'changesKeptMs'
    | 'changesMergedWithinMs'
    | 'changeErrorCharsMax'
    | 'presenceIntervalMs'
    | 'storePatientDeadlineMs'
    | 'listReportsMax'
  >;
}): Changes {
  const list = createSharedList<Change>({
    ...deps,
    names: (prefix) => [redisKeys.changes.name(prefix), redisKeys.changesReports.name(prefix)],
    entriesMax: bounds.changesMax,
    keptMs: bounds.changesKeptMs,
    bounds,
  });
  return {
    record(change) {
      const { action, by, before, after, error } = change;
      list.record({
        what: [action, by, before, after],
        mergedWithinMs: bounds.changesMergedWithinMs,
        entry:
          error === undefined ? change : { ...change, error: error.slice(0, bounds.changeErrorCharsMax) },
      });
    },
    async read(options) {
      const { entries: changes, ...page } = await list.read(options);
      return { ...page, changes };
    },
    close: list.close,
  };
}
