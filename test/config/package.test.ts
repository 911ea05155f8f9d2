import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../support/require-program.ts';
import { bareEnvironment } from '../support/run-tollgate.ts';
import { usePackage } from '../support/use-package.ts';

const run = promisify(execFile);
const description = JSON.parse(readFileSync('package.json', 'utf8'));
const everythingServed = {
  any: 200,
  pages: 200,
  document: 200,
  keys: 200,
  reference: [200, 200, 200],
  usedUp: 429,
};

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-package-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns the beginning of a command that runs a program in a network namespace with only a loopback device. */
async function withoutNetwork(): Promise<readonly [string, ...string[]]> {
  const advice = 'The test of the npm package needs Linux with the programs unshare and ip.';
  const unshare = await requireProgram({ names: ['unshare'], packageName: 'util-linux', advice });
  const ip = await requireProgram({ names: ['ip'], packageName: 'iproute2', advice });
  const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  return [unshare, '--net', ...asRoot, 'sh', '-c', `${ip} link set lo up && exec "$@"`, 'sh'];
}

test('the gateway runs as JavaScript below node_modules, as in the npm package', async () => {
  const folder = newFolder();
  const target = join(folder, 'node_modules', 'tollgate');
  await run(process.execPath, ['config/package/build.ts', join(target, 'dist')]);
  cpSync('package.json', join(target, 'package.json'));
  cpSync('gateway/cli/bin.js', join(target, 'gateway/cli/bin.js'));
  for (const name of Object.keys(description.dependencies)) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(process.cwd(), 'node_modules', name), link);
  }
  const command = [process.execPath, 'node_modules/tollgate/gateway/cli/bin.js'] as const;
  expect(await usePackage(command, { cwd: folder })).toMatchObject(everythingServed);
});

test('no package that the gateway needs runs a script when it is installed, and the page states their number', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const needed = new Map<string, { hasInstallScript?: boolean }>();
  const need = (names: object | undefined, from: string): void => {
    for (const name of Object.keys(names ?? {})) {
      const path = [`${from}/node_modules/${name}`, `node_modules/${name}`].find((one) => one in packages);
      if (path === undefined || needed.has(path)) continue;
      needed.set(path, packages[path]);
      need(packages[path].dependencies, path);
      need(packages[path].optionalDependencies, path);
    }
  };
  need(packages[''].dependencies, '');
  expect([...needed].filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
  const page = readFileSync('config/package/README.md', 'utf8').replaceAll('\n', ' ');
  expect(page).toContain(`The installed package and its ${needed.size} dependencies have `);
});

test('the package that npm packs is installed in an empty folder, and then runs without a network on Node 22.22 and 24', {
  tags: 'full',
}, async () => {
  const [folder, packed, oldest] = [newFolder(), newFolder(), newFolder()];
  const npm = (args: readonly string[], cwd: string, path = process.env.PATH) =>
    run('npm', [...args], { cwd, env: { ...process.env, PATH: path } });
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', '.'];
  const nodePackage = `node-linux-${process.arch}`;
  await Promise.all([
    npm(['pack', '--ignore-scripts=false', '--pack-destination', packed], process.cwd()),
    npm([...install, `${nodePackage}@22.22.0`], oldest),
  ]);
  const pathOf = (node: string) => [dirname(node), process.env.PATH].join(delimiter);
  const paths = {
    '22.22.0': pathOf(join(oldest, 'node_modules', nodePackage, 'bin/node')),
    [process.versions.node]: pathOf(process.execPath),
  };
  // With `--engine-strict`, the installation fails if a package does not support this version of Node.
  const file = join(packed, `tollgate-${description.version}.tgz`);
  await npm([...install, '--engine-strict', file], folder, paths['22.22.0']);

  const cut = await withoutNetwork();
  const program = join(process.cwd(), 'test/support/use-package.ts');
  const used = Object.entries(paths).map(async ([version, path]) => {
    // npx finds the package in the parent folder.
    const cwd = join(folder, version);
    mkdirSync(cwd);
    const [unshare, ...args] = [...cut, process.execPath, program, 'npx', 'tollgate'] as const;
    const { stdout } = await run(unshare, args, { cwd, env: { ...bareEnvironment, PATH: path } });
    return { ...JSON.parse(stdout), version };
  });
  const expected = { ...everythingServed, outside: 'ENETUNREACH' };
  expect(await Promise.all(used)).toEqual(
    Object.keys(paths).map((version) => ({ ...expected, version, node: version })),
  );
});
