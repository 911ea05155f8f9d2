export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** The cursor of the next page; undefined on the last page. */
  readonly next: string | undefined;
}

/** Reads a list page by page, until `isEnough` returns true for the last page and all entries so far. */
export async function readPages<Entry>(
  read: (after: string | undefined) => Promise<Page<Entry>>,
  isEnough: (page: readonly Entry[], all: readonly Entry[]) => boolean,
): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  let after: string | undefined;
  do {
    const { entries, next }: Page<Entry> = await read(after);
    all.push(...entries);
    after = next === after || isEnough(entries, all) ? undefined : next;
  } while (after !== undefined);
  return all;
}
