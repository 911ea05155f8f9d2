import { execFile } from 'node:child_process';
import { access, constants, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Returns the path of a program that tests need. If the program is missing, root on Debian or Ubuntu installs the distribution's package.
 *
 * @param names possible names of the program; the first name that is found is used
 * @throws with `advice` when the program is missing and cannot be installed
 */
export async function requireProgram(options: {
  readonly names: readonly string[];
  readonly packageName: string;
  readonly advice: string;
}): Promise<string> {
  const { names, packageName, advice } = options;
  const found = await findOnPath(names);
  if (found !== undefined) return found;
  if (!(await canInstall())) throw new Error(advice);
  console.log(
    `tests: installing the distribution’s ${packageName} with apt-get, since this machine has none`,
  );
  // When apt-get installs a server such as Redis, `RUNLEVEL` prevents the package from starting the server.
  const install = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' } };
  const installed = names.map((name) => `command -v ${name}`).join(' || ');
  const installing = `apt-get install --yes --no-install-recommends ${packageName}`;
  // A fresh image has no list of packages, and an old list may name packages that are gone. `apt-get update` costs a second of CPU time, so
  // it runs only when the installation fails.
  const commands = `${installed} || ${installing} || (apt-get update && ${installing})`;
  // Test files that run at the same time may need the same program, and apt-get fails while another apt-get runs.
  await run('flock', [join(tmpdir(), 'tollgate-tests-apt.lock'), 'sh', '-c', commands], install);
  const path = await findOnPath(names);
  if (path === undefined) throw new Error(advice);
  return path;
}

async function findOnPath(names: readonly string[]): Promise<string | undefined> {
  for (const name of names) {
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
