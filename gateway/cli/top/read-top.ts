import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { keyPage, state } from '../admin/api-shapes.ts';
import { CommandError } from '../output/command-error.ts';
import type { TopData } from './top-picture.ts';

export type TopReadBounds = Pick<Bounds, 'topKeysIntervalMs' | 'topKeysPauseFactor' | 'topKeysMax'>;

/** The data of `top`, for its picture and as JSON. */
export interface TopRead {
  readonly data: TopData;
  /** The responses of the admin API: `/state`, and two lists of `/keys`, which are null while they are unknown. */
  readonly json: {
    readonly state: unknown;
    readonly busiest: unknown;
    readonly mostRefused: unknown;
  };
}

/**
 * Reads the state each time, and the lists of keys less often. With many active keys these lists are the main cost for the
 * gateway, so the pause after reading them grows with the time that they took.
 */
export function createTopReader(
  client: Pick<AdminClient, 'get'>,
  { topKeysIntervalMs, topKeysPauseFactor, topKeysMax }: TopReadBounds,
): () => Promise<TopRead> {
  let keys: Awaited<ReturnType<typeof readKeys>> | undefined;
  let keysNotice: string | undefined;
  let readAgainMs = Number.NEGATIVE_INFINITY;

  async function readKeys() {
    const limit = String(topKeysMax);
    const busiest = await client.get('/keys', { sort: 'offered', limit }, keyPage);
    const mostRefused = await client.get('/keys', { sort: 'refused', limit }, keyPage);
    return { busiest, mostRefused };
  }

  return async () => {
    const read = await client.get('/state', {}, state);
    if (performance.now() >= readAgainMs) {
      const startMs = performance.now();
      [keys, keysNotice] = await readKeys().then(
        (found) => [found, undefined],
        (error) => [undefined, noticeOf(error)],
      );
      const tookMs = performance.now() - startMs;
      readAgainMs = performance.now() + Math.max(topKeysIntervalMs, topKeysPauseFactor * tookMs);
    }
    return {
      data: {
        state: read.body,
        busiest: keys?.busiest.body.keys ?? [],
        mostRefused: keys?.mostRefused.body.keys ?? [],
        keysNotice,
      },
      json: {
        state: read.json,
        busiest: keys === undefined ? null : Object(keys.busiest.json).keys,
        mostRefused: keys === undefined ? null : Object(keys.mostRefused.json).keys,
      },
    };
  };
}

/** A reason to draw the picture without keys, as while Redis is away. @throws an error that will not pass */
function noticeOf(error: unknown): string {
  if (error instanceof CommandError && error.kind === 'passing') return error.message;
  throw error;
}
