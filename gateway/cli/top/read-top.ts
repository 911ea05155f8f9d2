import type { Bounds } from '../../timeouts-and-sizes.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { keyPage, state } from '../admin/api-shapes.ts';
import type { TopData } from './top-picture.ts';

export type TopReadBounds = Pick<Bounds, 'topKeysIntervalMs' | 'topKeysPauseFactor' | 'topKeysMax'>;

/** What `top` reads, for its picture and as JSON. */
export interface TopRead {
  readonly data: TopData;
  /** The responses of the admin API: `/state`, and the keys of two lists of `/keys`. */
  readonly json: {
    readonly state: unknown;
    readonly busiest: unknown;
    readonly mostRefused: unknown;
  };
}

/**
 * Reads the state each time, and the lists of keys more rarely: with many active keys they cost the gateway more than all
 * else here, so they are left alone the longer, the longer they took.
 */
export function createTopReader(
  client: Pick<AdminClient, 'get'>,
  { topKeysIntervalMs, topKeysPauseFactor, topKeysMax }: TopReadBounds,
): () => Promise<TopRead> {
  let keys: Awaited<ReturnType<typeof readKeys>> | undefined;
  let readAgainMs = 0;

  async function readKeys() {
    const limit = String(topKeysMax);
    const busiest = await client.get('/keys', { sort: 'offered', limit }, keyPage);
    const mostRefused = await client.get('/keys', { sort: 'refused', limit }, keyPage);
    return { busiest, mostRefused };
  }

  return async () => {
    const read = await client.get('/state', {}, state);
    if (keys === undefined || performance.now() >= readAgainMs) {
      const startMs = performance.now();
      keys = await readKeys();
      const tookMs = performance.now() - startMs;
      readAgainMs = performance.now() + Math.max(topKeysIntervalMs, topKeysPauseFactor * tookMs);
    }
    const { busiest, mostRefused } = keys;
    return {
      data: { state: read.body, busiest: busiest.body.keys, mostRefused: mostRefused.body.keys },
      json: {
        state: read.json,
        busiest: Object(busiest.json).keys,
        mostRefused: Object(mostRefused.json).keys,
      },
    };
  };
}
