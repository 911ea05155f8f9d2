import { getStateWire } from '../../admin/wires/fleet/fleet.ts';
import { listKeysWire } from '../../admin/wires/keys/keys.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { CommandError } from '../output/command-error.ts';
import type { TopData } from './top-picture.ts';

/**
 * Reads the state for each update, and the lists of keys less often. If many keys are active, the lists are the main cost for the gateway.
 * The pause after a read of the lists grows with the duration of the read.
 *
 * @returns the data of the picture, and as `json` the responses of the admin API; lists are null while they are unknown
 */
export function createTopReader(
  client: Pick<AdminClient, 'ask'>,
  bounds: Bounds,
): () => Promise<{ readonly data: TopData; readonly json: object }> {
  let lists: Awaited<ReturnType<typeof readLists>>;
  let readAgainMs = Number.NEGATIVE_INFINITY;

  async function readLists() {
    const limit = bounds.topKeysMax;
    try {
      const busiest = await client.ask(listKeysWire, { query: { sort: 'offered', limit } });
      const mostRefused = await client.ask(listKeysWire, { query: { sort: 'refused', limit } });
      return { busiest, mostRefused, notice: undefined };
    } catch (error) {
      // Without the lists, the screen shows everything else.
      if (error instanceof CommandError && error.kind === 'passing') return { notice: error.message };
      throw error;
    }
  }

  return async () => {
    const read = await client.ask(getStateWire);
    if (performance.now() >= readAgainMs) {
      const startMs = performance.now();
      lists = await readLists();
      const pauseMs = bounds.topKeysPauseFactor * (performance.now() - startMs);
      readAgainMs = performance.now() + Math.max(bounds.topKeysIntervalMs, pauseMs);
    }
    const { busiest, mostRefused, notice } = lists;
    return {
      data: {
        state: read.body,
        busiest: busiest?.body.keys ?? [],
        keysLack: busiest?.body.missing?.what,
        mostRefused: mostRefused?.body.keys ?? [],
        keysNotice: notice,
      },
      json: {
        state: read.json,
        busiest: Object(busiest?.json).keys ?? null,
        mostRefused: Object(mostRefused?.json).keys ?? null,
      },
    };
  };
}
