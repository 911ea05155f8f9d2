import { getKeyWire } from '../../admin/wires/keys/key.ts';
import { keyFacts } from '../../capabilities/lists/commands.ts';
import type { Asking } from '../command.ts';
import { show } from '../output/show.ts';
import { keyLines } from './keys-view.ts';
import { clientAfterFlush } from './read/flush-counts.ts';
import { ofKey } from './read/read-key.ts';

export async function showKey(id: string, options: Asking): Promise<void> {
  const client = await clientAfterFlush(options);
  const reply = await ofKey(client, id, () => client.ask(getKeyWire, { params: { id } }));
  const facts = await Promise.all(keyFacts.map((load) => load()));
  show(options, reply, (body, screen, nowMs) => keyLines(body, facts, screen, nowMs));
}
