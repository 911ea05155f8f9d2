import { listKeysWire } from '../../admin/wires/keys/keys.ts';
import { keyList } from '../../admin/words/keys.js';
import { keysPerPageMax } from '../../shared/http/wire.ts';
import type { Asking } from '../command.ts';
import { showList } from '../output/show-list.ts';
import { clientAfterFlush } from './read/flush-counts.ts';
import { readList } from './read/read-list.ts';

export interface ListKeysOptions extends Asking {
  readonly state?: string;
  readonly plan?: string;
  readonly q?: string;
  readonly sort?: string;
  readonly limit: number;
  readonly all?: true;
  readonly csv?: true;
}

/** Prints the keys of a gateway with their states. */
export async function listKeys({ sort, limit, all, ...options }: ListKeysOptions): Promise<void> {
  const { state, plan, q } = options;
  const max = all || limit === 0 ? Number.POSITIVE_INFINITY : limit;
  const client = await clientAfterFlush(options);
  const reply = await readList(client, keysPage, { state, plan, q, sort }, max);
  if (reply.body.keys.length === 0 && plan !== undefined) {
    const { requirePlan } = await import('./read/read-plan.ts');
    await requirePlan(client, plan);
  }
  const more = 'There are more keys: --limit N shows N keys, and --all shows all keys.';
  showList(options, reply, keyList, {
    asked: { filter: { state, plan, q } },
    more: ({ keys, next }) => (next === undefined || keys.length === 0 ? [] : [more]),
  });
}

const keysPage = { wire: listKeysWire, member: 'keys', perPage: keysPerPageMax };
