import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';

const run = promisify(execFile);
/** The user `nobody`. */
const otherUser = 65_534;
const isRoot = process.getuid?.() === 0;

/** A folder that only this user can write, in place of the home of the user. */
function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-cache-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** Runs a command, which must succeed without a word about the cache. */
async function runCommand(env: Readonly<Record<string, string>>, cwd = process.cwd()): Promise<void> {
  const bin = join(process.cwd(), 'gateway/cli/bin.js');
  const ran = await run(process.execPath, [bin, 'keys', '--help'], { cwd, env });
  expect(ran.stdout).toMatch(/^Usage: tollgate keys /);
  expect(ran.stderr).toBe('');
}

describe('the cache of compiled code', () => {
  it('is in the cache folder of the user, and only this user may read or write it', async () => {
    const home = newHome();
    await runCommand({ HOME: home });
    const folder = join(home, '.cache/tollgate');
    expect(lstatSync(folder).mode & 0o777).toBe(0o700);
    expect(readdirSync(folder, { recursive: true }).length).toBeGreaterThan(10);
    const stated = newHome();
    await runCommand({ HOME: '/nowhere', XDG_CACHE_HOME: stated });
    expect(readdirSync(join(stated, 'tollgate'), { recursive: true }).length).toBeGreaterThan(10);
  });

  it.each(['770', '707', '755', '711', '500'])(
    'is not used if the mode of its folder is %s',
    async (octal) => {
      const folder = join(newHome(), 'tollgate');
      mkdirSync(folder);
      chmodSync(folder, Number.parseInt(octal, 8));
      await runCommand({ XDG_CACHE_HOME: join(folder, '..') });
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  it('is not used if its folder is a symbolic link', async () => {
    const [base, elsewhere] = [newHome(), newHome()];
    symlinkSync(elsewhere, join(base, 'tollgate'));
    await runCommand({ XDG_CACHE_HOME: base });
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it('is not used if another user can replace its folder, and is used in a folder with the sticky bit', async () => {
    const [open, sticky] = [newHome(), newHome()];
    chmodSync(open, 0o777);
    chmodSync(sticky, 0o1777);
    await runCommand({ XDG_CACHE_HOME: join(open, 'cache') });
    expect(readdirSync(open)).toEqual([]);
    await runCommand({ XDG_CACHE_HOME: sticky });
    expect(readdirSync(join(sticky, 'tollgate'))).toHaveLength(1);
  });

  it.runIf(isRoot)(
    'is not used if its folder or the home belongs to another user, as with sudo',
    async () => {
      const [base, home] = [newHome(), newHome()];
      const folder = join(base, 'tollgate');
      mkdirSync(folder, { mode: 0o700 });
      chownSync(folder, otherUser, otherUser);
      await runCommand({ XDG_CACHE_HOME: base });
      expect(readdirSync(folder)).toEqual([]);
      chownSync(home, otherUser, otherUser);
      await runCommand({ HOME: home });
      expect(readdirSync(home)).toEqual([]);
    },
  );

  it('is not needed: a command runs without a home, and with a home that cannot be written', async () => {
    const home = newHome();
    const file = join(home, 'file');
    writeFileSync(file, '');
    await runCommand({ HOME: file });
    await runCommand({ HOME: '/proc/nowhere' });
    // Without HOME, the system states the home of the user. The second variable keeps this test from writing there.
    await runCommand({ XDG_CACHE_HOME: '/dev/null' });
    const here = newHome();
    await runCommand({ HOME: '' }, here);
    await runCommand({ HOME: '', XDG_CACHE_HOME: 'cache' }, here);
    expect(readdirSync(here)).toEqual([]);
    expect(existsSync(join(home, '.cache'))).toBe(false);
  });
});

it('an older Node ends with one line, which names the version that package.json states', async () => {
  const older =
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.21.1" } })';
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8'));
  const args = [
    '--import',
    `data:text/javascript,${encodeURIComponent(older)}`,
    'gateway/cli/bin.js',
    '--version',
  ];
  const stated = String(engines.node).replace('>=', '');
  await expect(run(process.execPath, args)).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: `tollgate needs Node ${stated} or newer, and this is Node 22.21.1.\n`,
  });
});
