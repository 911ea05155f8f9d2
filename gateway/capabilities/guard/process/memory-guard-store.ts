import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { GuardedEdit } from '../guarded-edit.ts';
import { addReport, firstState, type GuardRecord, retryEdit } from './decide-guard.ts';
import type { GuardStore } from './guard-store.ts';

/** The states of guards in a single process without Redis. The states are lost when the process exits. */
export function createMemoryGuardStore({
  nowMs,
  bounds,
}: {
  /** Epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}): GuardStore {
  const records = new Map<string, GuardRecord & { usedMs: number }>();

  return {
    started: Promise.resolve(),
    together: (calls) => calls(),
    async report(edit, report) {
      const record = recordOf(edit);
      const decided = addReport(record, report, edit.guard, nowMs(), bounds);
      return { kind: 'replied', state: record.state, ...decided };
    },
    async retry(edit, known) {
      const record = recordOf(edit);
      const hasChanged = retryEdit(record, known);
      return { kind: 'replied', state: record.state, figures: { requests: 0, refused: 0 }, hasChanged };
    },
    onReturn() {},
  };

  function recordOf({ identity }: GuardedEdit): GuardRecord {
    const usedMs = nowMs();
    const record = records.get(identity) ?? { state: firstState, slots: new Map(), usedMs };
    record.usedMs = usedMs;
    records.set(identity, record);
    for (const [name, other] of records) {
      if (usedMs - other.usedMs > bounds.guardKeptMs) records.delete(name);
    }
    return record;
  }
}
