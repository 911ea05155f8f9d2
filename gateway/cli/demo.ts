/**
 * `npm start`: the gateway and the store in one terminal, with demo keys that are valid as long as this process runs. It
 * draws the secrets and gives the gateway their digests in its environment, so that no secret is in a file or in an
 * argument list.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { digestSecret, issueSecret } from '../config/issue-secret.ts';

const startTimeoutMs = 20_000;
const startPollMs = 50;
const signalEchoMs = 500;

const port = process.env.PORT || '8080';
const adminPort = process.env.ADMIN_PORT || '9090';
const backendPort = process.env.BACKEND_PORT || '3000';
const baseUrl = `http://127.0.0.1:${port}/v1`;

const busy = await Promise.all([
  portProblem('PORT', port),
  portProblem('ADMIN_PORT', adminPort),
  portProblem('BACKEND_PORT', backendPort),
]);
for (const problem of busy) if (problem !== undefined) console.error(problem);
if (busy.some((problem) => problem !== undefined)) process.exit(1);

const secrets = {
  free: issueSecret(),
  pro: issueSecret(),
  business: issueSecret(),
  enterprise: issueSecret(),
};

const store = spawnNode('backend/main.ts', [], { PORT: backendPort, HOST: '127.0.0.1', STORE_SEED: 'demo' });
const gateway = spawnNode('gateway/main.ts', ['--config', pathOf('config/local.yaml')], {
  DEMO_FREE_SHA256: digestSecret(secrets.free),
  DEMO_PRO_SHA256: digestSecret(secrets.pro),
  DEMO_BUSINESS_SHA256: digestSecret(secrets.business),
  DEMO_ENTERPRISE_SHA256: digestSecret(secrets.enterprise),
});
const children = [store, gateway];

// The children are in process groups of their own, so that a Ctrl-C reaches them only through this process, once. This
// process gets it twice, from the terminal and from npm: the second is ignored unless it comes later.
let lastSignalMs = Number.NEGATIVE_INFINITY;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stopAll);

const isUp = await waitUntilUp();
if (isUp) printGuide();
else if (children.every(isRunning)) {
  console.error(`Not up within ${startTimeoutMs / 1000} s; the lines above may say why.`);
}

await Promise.race(children.map(ended));
// One of them has failed, and the other is of no use alone.
if (lastSignalMs === Number.NEGATIVE_INFINITY) stopAll();
const isClean = await Promise.all(children.map(ended));
process.exitCode = isClean.every(Boolean) ? 0 : 1;

function pathOf(file: string): string {
  return fileURLToPath(new URL(`../../${file}`, import.meta.url));
}

function spawnNode(script: string, args: readonly string[], env: Record<string, string>): ChildProcess {
  return spawn(process.execPath, [pathOf(script), ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
    env: { ...process.env, ...env },
  });
}

/** Resolves when a child has ended: with true when it exited with 0, or was interrupted before it listened for signals. */
async function ended(child: ChildProcess): Promise<boolean> {
  if (isRunning(child)) await once(child, 'exit');
  return child.exitCode === 0 || child.signalCode === 'SIGINT';
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

function stopAll(): void {
  const nowMs = performance.now();
  if (nowMs - lastSignalMs < signalEchoMs) return;
  lastSignalMs = nowMs;
  for (const child of children) child.kill('SIGINT');
}

/** One sentence when a port cannot be listened on. It is written here, since the processes do not know these names. */
function portProblem(name: string, value: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(`${name} ${value} is in use: set ${name} to another port.`));
    try {
      server.listen(Number(value), '127.0.0.1', () => server.close(() => resolve(undefined)));
    } catch {
      resolve(`${name} is "${value}": it must be a port, a number from 1 to 65535.`);
    }
  });
}

async function waitUntilUp(): Promise<boolean> {
  const deadlineMs = Date.now() + startTimeoutMs;
  // Another process may answer on the port of a child that has ended.
  while (children.every(isRunning) && Date.now() < deadlineMs) {
    const healthy = await Promise.all([
      answers(`http://127.0.0.1:${adminPort}/readyz`),
      answers(`http://127.0.0.1:${backendPort}/healthz`),
    ]);
    await sleep(startPollMs);
    if (healthy.every(Boolean) && children.every(isRunning)) return true;
  }
  return false;
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    return response.ok;
  } catch {
    return false;
  }
}

function printGuide(): void {
  console.log(`
Tollgate listens on ${baseUrl}, its admin listener on http://127.0.0.1:${adminPort}, the store on http://127.0.0.1:${backendPort}.
Counts are kept ${process.env.REDIS_URL ? 'in Redis' : 'in memory (set REDIS_URL to keep them in Redis)'}. Ctrl-C stops everything.

Keys of this run:
  Free        ${secrets.free}
  Pro         ${secrets.pro}
  Business    ${secrets.business}
  Enterprise  ${secrets.enterprise}

A request that gets a 200:
  curl -i -H 'Authorization: Bearer ${secrets.free}' ${baseUrl}/pets

One after the other until the Free plan's minute is spent, a 429:
  until curl -s -o /dev/null -w '%{http_code}\\n' -H 'Authorization: Bearer ${secrets.free}' ${baseUrl}/pets | tee /dev/stderr | grep -q 429; do :; done
`);
}
