import { setTimeout as sleep } from 'node:timers/promises';
import { type ChangesShown, listChangesWire } from '../../../admin/wires/changes.ts';
import { CommandError } from '../../output/command-error.ts';
import type { AdminClient } from '../admin-client.ts';

/** New changes, the oldest first. */
export interface FollowedChanges {
  readonly changes: ChangesShown['changes'];
  /** The JSON of the same changes, as it was received. */
  readonly jsonChanges: readonly unknown[];
}

export interface Follower {
  /** The next changes are read after the promise has resolved. */
  readonly print: (followed: FollowedChanges) => Promise<void>;
  /** Called with a sentence when changes cannot be read, when they can be read again, and when the record may lack changes. */
  readonly tell: (line: string) => void;
}

/** A page of the record of changes. */
interface Page {
  /** The newest first. */
  readonly entries: readonly { readonly id: string; readonly change: Change; readonly json: unknown }[];
  /** The id after which the next older page begins; undefined for the oldest page. */
  readonly next: string | undefined;
}

type Change = ChangesShown['changes'][number];

/** The position before the first change of the record. */
const beginning = '0-0';

/**
 * Prints the last `limit` changes, or all changes after the change `after`, and then each new change once. The ids of changes grow in the
 * order in which changes are recorded, so the id of the last printed change is the position. Only one page is in memory at a time.
 *
 * While the gateway or Redis is away, the function tries again. Without Redis, a gateway returns only its own changes, with other ids. The
 * function therefore waits for Redis.
 *
 * @param signal ends the function
 * @throws a CommandError that will not pass, such as a wrong token
 */
export async function followChanges(
  client: Pick<AdminClient, 'ask' | 'bounds' | 'origin'>,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
  { print, tell }: Follower,
  signal?: AbortSignal,
): Promise<void> {
  const { followIntervalMs, followRetryMaxMs, changesPerPageMax } = client.bounds;
  const wire = listChangesWire(client.bounds);
  let position = after;
  /** All changes before this id are printed. A gateway omits changes that it does not know, so the position may be earlier. */
  let reached = beginning;
  /** The position at which the record was found to lack older changes. */
  let toldPosition: string | undefined;
  let isAway = false;
  let pauseMs = followIntervalMs;

  while (!signal?.aborted) {
    try {
      position ??= await positionBefore(limit);
      while (!(await printNews()));
      if (isAway) tell('The record of changes can be read again.');
      isAway = false;
      pauseMs = followIntervalMs;
    } catch (error) {
      if (!(error instanceof CommandError) || error.kind !== 'passing') throw error;
      if (!isAway) tell(`${error.message} This command tries again until the record of changes can be read.`);
      pauseMs = isAway ? Math.min(2 * pauseMs, followRetryMaxMs) : followIntervalMs;
      isAway = true;
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }

  /** @returns the id before the newest `count` changes */
  async function positionBefore(count: number): Promise<string> {
    let left = count;
    let page = await readPage();
    while (page.entries.length <= left && page.next !== undefined) {
      left -= page.entries.length;
      page = await readPage(page.next);
    }
    return page.entries[left]?.id ?? beginning;
  }

  /**
   * Prints the changes after the position. If these are several pages, the function first pages back to the position, and then prints page by
   * page. It does not print the newest page then, because further changes may have moved that page.
   *
   * @returns whether the newest page was printed
   */
  async function printNews(): Promise<boolean> {
    const cursors: string[] = [];
    let page = await readPage();
    while (page.next !== undefined && page.next !== reached && isUnprinted(page.next)) {
      cursors.push(page.next);
      page = await readPage(page.next);
    }
    tellLoss(page);
    const isNewest = cursors.length === 0;
    await printPage(page);
    for (let cursor = cursors.pop(); cursor !== undefined; cursor = cursors.pop()) {
      reached = cursor;
      if (cursors.length > 0) await printPage(await readPage(cursors.at(-1)));
    }
    return isNewest;
  }

  async function printPage({ entries }: Page): Promise<void> {
    const news = entries.filter(({ id }) => isUnprinted(id)).reverse();
    const last = news.at(-1);
    if (last === undefined) return;
    await print({ changes: news.map(({ change }) => change), jsonChanges: news.map(({ json }) => json) });
    position = last.id;
  }

  function isUnprinted(id: string): boolean {
    return isNewer(id, position) && !isNewer(reached, id);
  }

  /** @param oldest the page that has the position, or the oldest page of the record */
  function tellLoss({ entries, next }: Page): void {
    if (position === undefined || position === beginning || position === toldPosition) return;
    if (next !== undefined || entries.some(({ id }) => !isNewer(id, position))) return;
    toldPosition = position;
    tell(`The record no longer has the change ${position}, so changes after it may be missing here.`);
  }

  /** @throws a CommandError, also if the gateway returns only its own changes */
  async function readPage(olderThan?: string): Promise<Page> {
    const { body, json } = await client.ask(wire, { query: { limit: changesPerPageMax, after: olderThan } });
    if (!body.isComplete) throw new CommandError(`Redis is away from ${client.origin}.`, 'passing');
    const jsonChanges: readonly unknown[] = Object(json).changes;
    const entries = body.changes
      .map((change, index) => ({ id: change.id, change, json: jsonChanges[index] }))
      // The response is sorted by the times of the changes. A change that waited for Redis has an earlier time and a later id.
      .sort((a, b) => (isNewer(a.id, b.id) ? -1 : 1));
    const { next } = body;
    // The pages of a gateway without Redis begin again if the change `olderThan` was removed from its memory.
    const isOlder = next !== undefined && (olderThan === undefined || isNewer(olderThan, next));
    return { entries, next: isOlder ? next : undefined };
  }
}

/** Compares ids such as "1795600000000-0". */
function isNewer(id: string, than = beginning): boolean {
  const [ms = 0, number = 0] = id.split('-').map(Number);
  const [thanMs = 0, thanNumber = 0] = than.split('-').map(Number);
  return ms === thanMs ? number > thanNumber : ms > thanMs;
}
