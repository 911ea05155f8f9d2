export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** The cursor of the next page; undefined on the last page. */
  readonly next: string | undefined;
}

/**
 * Reads the pages of a list one after the other. After each page, `isEnough` receives this page and all entries so far.
 * The function stops when `isEnough` returns true, and after the last page.
 */
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
