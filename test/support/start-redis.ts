import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { inspect } from './inspect.ts';
import { redisBinary } from './redis-binary.ts';
import type { RedisTls } from './redis-tls.ts';

/** A Redis server for one test, which the test can kill, freeze and restart on the same port. It persists nothing. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Sends SIGKILL: connections break and all data is lost. */
  kill(): Promise<void>;
  /** Starts a new, empty server on the same port. */
  restart(): Promise<void>;
  /** Sends SIGSTOP: connections remain open, and no command gets a reply. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/**
 * @param options further command-line options, as `redis-server` takes them
 * @param tls in place of plain TCP
 */
export async function startRedis(
  options: readonly string[] = [],
  onPort?: number,
  tls?: RedisTls,
): Promise<RedisServer> {
  const binary = await redisBinary();
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-redis-'));
  const port = onPort ?? (await freePort());
  const url = `${tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`;
  let server = await launch();

  return {
    url,
    port,
    kill,
    async restart() {
      await kill();
      server = await launch();
    },
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };

  async function launch(): Promise<ChildProcess> {
    const listen = tls ? ['--port', '0', '--tls-port', `${port}`, ...tls.options] : ['--port', `${port}`];
    const settings = [...listen, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn(binary, [...settings, '--dir', folder, ...options], { stdio: 'ignore' });
    await waitUntilReady(url, tls);
    return child;
  }

  async function kill(): Promise<void> {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
  }
}

/** Waits until Redis responds to a PING. @throws when there is no response within half a minute */
export async function waitUntilReady(url: string, tls?: RedisTls): Promise<void> {
  const client = inspect(url, tls);
  try {
    const pong = await Promise.race([client.ping(), sleep(30_000, undefined, { ref: false })]);
    if (pong === undefined) throw new Error(`No Redis answers at ${new URL(url).host}.`);
  } finally {
    client.disconnect();
  }
}
