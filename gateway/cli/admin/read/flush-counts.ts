import { flushCountsWire } from '../../../admin/wires/fleet/flush.ts';
import { counted } from '../../../shared/words/figures.js';
import type { GatewayOptions } from '../../command.ts';
import { CommandError } from '../../output/command-error.ts';
import type { AdminClient } from '../admin-client.ts';
import { clientOf } from '../find-gateway.ts';

/**
 * Calls `flushCounts`, and returns the client with which the command then reads usage.
 *
 * @throws a CommandError if the gateway cannot be asked
 */
export async function clientAfterFlush(options: GatewayOptions): Promise<AdminClient> {
  const client = await clientOf(options);
  await flushCounts(client);
  return client;
}

/**
 * Makes all gateway processes send their counts. A command calls this function before it reads usage. If a process sends no counts in time,
 * the function prints a notice.
 *
 * @throws a CommandError if the gateway cannot be asked
 */
export async function flushCounts(client: Pick<AdminClient, 'ask'>): Promise<void> {
  try {
    const { body } = await client.ask(flushCountsWire);
    // While Redis is away, the response with the figures says so.
    if (!body.isComplete || body.behind.length === 0) return;
    const processes = body.behind.map(({ host, pid }) => `${host} (process ${pid})`).join(', ');
    const late = `${counted(body.behind.length, 'process has', 'processes have')} not sent the latest counts: ${processes}`;
    process.stderr.write(`${late}. The figures may lack requests of the last minute.\n`);
  } catch (error) {
    // A gateway of an earlier version has no such path, and its processes send all counts every ten seconds.
    if (!(error instanceof CommandError && error.kind === 'not_found')) throw error;
  }
}
