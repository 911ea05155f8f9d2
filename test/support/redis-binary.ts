import { execFile } from 'node:child_process';
import { access, constants, readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The path of a Redis server to start: one on the PATH, or as root on Debian and Ubuntu the distribution's own. */
export async function redisBinary(): Promise<string> {
  const found = await findOnPath();
  if (found !== undefined) return found;
  if (!(await canInstall())) throw new Error(advice);
  console.log('tests: no Redis on this machine; installing the distribution’s redis-server with apt-get');
  // The package must not start a server of its own on port 6379.
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' } };
  await run('apt-get', ['update'], options);
  await run('apt-get', ['install', '--yes', '--no-install-recommends', 'redis-server'], options);
  const installed = await findOnPath();
  if (installed === undefined) throw new Error(advice);
  return installed;
}

const advice =
  'The tests need a real Redis and found none: set TEST_REDIS_URL, or start Docker with the image ' +
  'redis:7.4-bookworm, or put redis-server or valkey-server on the PATH.';

async function findOnPath(): Promise<string | undefined> {
  for (const name of ['redis-server', 'valkey-server']) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
      const path = join(folder, name);
      if (await isExecutable(path)) return path;
    }
  }
  return undefined;
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function canInstall(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^ID(_LIKE)?=.*(debian|ubuntu)/m.test(release);
}
