import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Installs the peers' packages from their own lock file, once. If the installation fails, the benchmark runs without the peers. */
export async function installPeers(): Promise<void> {
  const home = fileURLToPath(new URL('.', import.meta.url));
  if (existsSync(`${home}/node_modules`)) return;
  console.log(`installing the peers' packages: npm ci in ${home}`);
  const npm = spawn('npm', ['ci', '--no-audit', '--no-fund'], { cwd: home, stdio: 'inherit' });
  const exitCode = await new Promise((resolve) => npm.once('exit', resolve).once('error', resolve));
  if (exitCode !== 0) console.error('npm ci failed: the Node peers are missing');
}
