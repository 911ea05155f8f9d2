import { listDeadSecretsWire } from '../../admin/wires/keys/dead-secrets.ts';
import { listKeysWire } from '../../admin/wires/keys/keys.ts';
import { listOldSecretsWire } from '../../admin/wires/keys/old-secrets.ts';
import { deadSecretList } from '../../admin/words/dead-secrets.js';
import { keyList } from '../../admin/words/keys.js';
import { oldSecretList } from '../../admin/words/old-secrets.js';
import { keysPerPageMax } from '../../shared/http/wire.ts';
import type { Asking } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { showList } from '../output/show-list.ts';
import { clientAfterFlush } from './read/flush-counts.ts';
import { readList } from './read/read-list.ts';

export interface ListKeysOptions extends Asking {
  readonly state?: string;
  readonly plan?: string;
  readonly q?: string;
  readonly olderThan?: string;
  readonly sort?: string;
  readonly limit: number;
  readonly all?: true;
  readonly csv?: true;
  readonly dead?: true;
  readonly notMoved?: true;
}

/** Prints the keys of a gateway with their states. */
export async function listKeys({ sort, limit, all, ...options }: ListKeysOptions): Promise<void> {
  const { state, plan, q, olderThan, dead, notMoved } = options;
  if (dead || notMoved) {
    const about = dead
      ? '--dead lists all secrets that are not valid but in use'
      : '--not-moved lists all old secrets that are still in use';
    if ([state, plan, q, olderThan, sort, all].some((one) => one !== undefined) || (dead && notMoved))
      throw new CommandError(`${about}. It has no --state, --plan, --q, --older-than, --sort or --all.`);
    return dead ? listDead(options) : listNotMoved(options);
  }
  const max = all || limit === 0 ? Number.POSITIVE_INFINITY : limit;
  const client = await clientAfterFlush(options);
  const reply = await readList(client, keysPage, { state, plan, q, olderThan, sort }, max);
  if (reply.body.keys.length === 0 && plan !== undefined) {
    const { requirePlan } = await import('./read/read-plan.ts');
    await requirePlan(client, plan);
  }
  const more = 'There are more keys: --limit N shows N keys, and --all shows all keys.';
  showList(options, reply, olderThan === undefined ? keyList : keysByAge, {
    asked: { filter: { state, plan, q, olderThan } },
    more: ({ keys, next }) => (next === undefined || keys.length === 0 ? [] : [more]),
  });
}

async function listDead(options: Omit<ListKeysOptions, 'sort' | 'limit' | 'all'>): Promise<void> {
  const reply = await (await clientAfterFlush(options)).ask(listDeadSecretsWire);
  showList(options, reply, deadSecretList, { asked: { filter: {} } });
}

async function listNotMoved(options: Omit<ListKeysOptions, 'sort' | 'limit' | 'all'>): Promise<void> {
  const reply = await (await clientAfterFlush(options)).ask(listOldSecretsWire);
  showList(options, reply, oldSecretList, { asked: { filter: {} } });
}
/** The list of `--older-than` also shows the age that the option asks for, beside the id. */
const keysByAge = { ...keyList, onTerminal: keyList.onTerminal.toSpliced(1, 0, 'newest_secret') };

const keysPage = { wire: listKeysWire, member: 'keys', perPage: keysPerPageMax };
