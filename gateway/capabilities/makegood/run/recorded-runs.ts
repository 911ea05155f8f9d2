import type { ChangedMembers, KeyChange } from '../../../fleet/changes.ts';
import type { Author } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { MakegoodFigures } from '../wires.ts';
import { addParts } from './add-parts.ts';

export type RecordedRuns = ReturnType<typeof createRecordedRuns>;

interface OpenRun {
  readonly author: Author;
  /** The period and the filters of the run. */
  readonly asked: ChangedMembers;
  figures: MakegoodFigures;
  timer: NodeJS.Timeout;
}

/**
 * Records each run in the record of changes, once for all its parts. If a client requests no further part, the parts so far are recorded
 * after a while. If different processes served the parts of a run, each process records its own parts.
 */
export function createRecordedRuns({
  record,
  bounds,
}: {
  readonly record: (change: KeyChange) => void;
  readonly bounds: Pick<Bounds, 'makegoodIdleMs' | 'makegoodKeysNamedMax'>;
}) {
  const open = new Map<string, OpenRun>();

  function end(run: string): void {
    const ended = open.get(run);
    if (ended === undefined) return;
    open.delete(run);
    clearTimeout(ended.timer);
    const { keys, failedUnits, givenBack, unreadKeys, creditedKeys } = ended.figures;
    const unread = unreadKeys > 0 ? { unreadKeys } : {};
    record({
      action: 'makegood',
      ...ended.author,
      after: { ...ended.asked, keys: creditedKeys, failedKeys: keys, failedUnits, givenBack, ...unread },
    });
  }

  return {
    /** Notes a part of a run. @param isLast whether the run ends with this part */
    note(
      run: string,
      { author, asked, figures }: Pick<OpenRun, 'author' | 'asked' | 'figures'>,
      isLast: boolean,
    ): void {
      const before = open.get(run);
      clearTimeout(before?.timer);
      const sum = before ? addParts(before.figures, figures, bounds.makegoodKeysNamedMax) : figures;
      const timer = setTimeout(() => end(run), bounds.makegoodIdleMs).unref();
      open.set(run, { author, asked, figures: sum, timer });
      if (isLast) end(run);
    },
    /** Records the runs whose last part has not arrived. */
    close(): void {
      for (const run of open.keys()) end(run);
    },
  };
}
