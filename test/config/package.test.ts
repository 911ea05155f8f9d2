import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { bareEnvironment } from '../support/run-tollgate.ts';

const run = promisify(execFile);
const bin = 'node_modules/tollgate/gateway/cli/bin.js';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-package-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs `init` and then `start` with two workers in a folder that has the package, and requests everything that the package serves. */
async function useIn(cwd: string, node: string): Promise<void> {
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  onTestFinished(() => backend.close());
  const [port, adminPort] = [await freePort(), await freePort()];
  const env = { ...bareEnvironment, PORT: String(port), ADMIN_PORT: String(adminPort) };
  const options = { cwd, env };
  const { stdout } = await run(node, [bin, 'init', '--upstream', backend.url], options);
  const [secret = ''] = /tg_\w+/.exec(stdout) ?? [];
  const [token = ''] = /tga_\w+/.exec(stdout) ?? [];

  const gateway = spawn(node, [bin, 'start'], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    gateway.kill('SIGKILL');
    if (gateway.exitCode === null) await once(gateway, 'exit');
  });
  for await (const line of createInterface(gateway.stdout)) if (line.includes('the gateway listens')) break;

  const statusOf = async (url: string, bearer: string) => {
    const response = await fetch(url, { headers: { authorization: `Bearer ${bearer}` } });
    await response.text();
    return response.status;
  };
  // The gateway has the default timeouts. If a busy gateway exceeds a timeout, it responds with 503 for a moment.
  const serves = (url: string, bearer: string) => expect.poll(() => statusOf(url, bearer)).toBe(200);
  const admin = `http://127.0.0.1:${adminPort}`;
  await serves(`http://127.0.0.1:${port}/any`, secret);
  await serves(`${admin}/`, '');
  // The API document is a file of the package, and the reading thread lists keys.
  await serves(`${admin}/api/v1/openapi.json`, token);
  await serves(`${admin}/api/v1/keys`, token);
}

test('the gateway runs as JavaScript below node_modules, as in the npm package', async () => {
  const folder = newFolder();
  const target = join(folder, 'node_modules', 'tollgate');
  await run(process.execPath, ['config/package/build.ts', join(target, 'dist')]);
  const description = JSON.parse(readFileSync('package.json', 'utf8'));
  cpSync('package.json', join(target, 'package.json'));
  cpSync('gateway/cli/bin.js', join(target, 'gateway/cli/bin.js'));
  for (const name of Object.keys(description.dependencies)) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(process.cwd(), 'node_modules', name), link);
  }
  await useIn(folder, process.execPath);
});

test.each(['22.22.0', '24.21.0'])(
  'the package that npm packs is installed in an empty folder and runs on Node %s',
  { tags: 'full' },
  async (version) => {
    const folder = newFolder();
    const packed = newFolder();
    const npm = (args: readonly string[], cwd: string) => run('npm', [...args], { cwd });
    await npm(['pack', '--ignore-scripts=false', '--pack-destination', packed], process.cwd());
    const { version: own } = JSON.parse(readFileSync('package.json', 'utf8'));
    const node = `node-linux-${process.arch}@${version}`;
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder];
    await npm([...args, join(packed, `tollgate-${own}.tgz`), node], folder);
    await useIn(folder, join(folder, `node_modules/node-linux-${process.arch}/bin/node`));
  },
);
