import { Redis } from 'ioredis';
import { freePort } from '../support/free-port.ts';
import { findProgram } from './find-program.ts';
import { startProcess } from './processes.ts';

export interface BenchRedis {
  readonly pid: number;
  readonly port: number;
  /** The number of script calls since the start. Every subject counts requests with a Lua script in Redis. */
  scriptCalls(): Promise<number>;
  close(): void;
}

const connectTimeoutMs = 10_000;

/** Starts a real Redis that writes nothing to disk, so that the speed of the disk does not matter. */
export async function startRedis(
  dir: string,
  { cpus, options = [] }: { readonly cpus?: string | undefined; readonly options?: readonly string[] } = {},
): Promise<BenchRedis> {
  const program = findProgram('redis-server') ?? findProgram('valkey-server');
  if (program === undefined) throw new Error('redis-server is missing: apt-get install redis-server');
  const port = await freePort();
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    ...options,
  ];
  const { pid } = startProcess(program, args, { dir, name: 'redis', cpus });
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, connectTimeout: connectTimeoutMs });
  client.on('error', () => {}); // Until it listens; `ping` below waits for that.
  await client.ping();

  return {
    pid,
    port,
    scriptCalls: async () => countScriptCalls(await client.info('commandstats')),
    close: () => client.disconnect(),
  };
}

/** Counts script calls in `INFO commandstats`, which lists commands from inside a script under their own names. */
function countScriptCalls(commandStats: string): number {
  let calls = 0;
  for (const [, count] of commandStats.matchAll(/^cmdstat_(?:eval|evalsha|fcall):calls=(\d+)/gm)) {
    calls += Number(count);
  }
  return calls;
}
