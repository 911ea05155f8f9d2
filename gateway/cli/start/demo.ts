/**
 * Runs the gateway and the pet store in one terminal (`npm start`). The demo keys are valid as long as this process runs. This
 * process makes the secrets, and passes their digests to the gateway in the environment. No file and no argument list contains a secret.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { digestSecret, issueAdminToken, issueSecret } from '../../shared/secrets.ts';
import { portProblem } from './port-problem.ts';

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

// The gateway gets only the digest of the token. `spawnNode` removes the token from the environment.
const adminToken = process.env.TOLLGATE_ADMIN_TOKEN || issueAdminToken();
const shownAuthorization = process.env.TOLLGATE_ADMIN_TOKEN
  ? '"Authorization: Bearer $TOLLGATE_ADMIN_TOKEN"'
  : `'Authorization: Bearer ${adminToken}'`;
// A token that the operator has set is not printed.
const shownToken = process.env.TOLLGATE_ADMIN_TOKEN ? 'the token in TOLLGATE_ADMIN_TOKEN' : adminToken;

const store = spawnNode('backend/main.ts', [], { PORT: backendPort, HOST: '127.0.0.1', STORE_SEED: 'demo' });
const gateway = spawnNode('gateway/main.ts', ['--config', pathOf('config/local.yaml')], {
  DEMO_FREE_SHA256: digestSecret(secrets.free),
  DEMO_PRO_SHA256: digestSecret(secrets.pro),
  DEMO_BUSINESS_SHA256: digestSecret(secrets.business),
  DEMO_ENTERPRISE_SHA256: digestSecret(secrets.enterprise),
  DEMO_ADMIN_SHA256: digestSecret(adminToken),
  // Redis still has the counts of an earlier run, so each run uses new key ids.
  DEMO_RUN: randomBytes(3).toString('hex'),
});
const children = [store, gateway];

// The child processes are in separate process groups, so Ctrl-C signals only this process. This process then signals each child once. The
// terminal and npm both signal this process, so it ignores a second signal that follows immediately.
let lastSignalMs = Number.NEGATIVE_INFINITY;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stopAll);

const canAsk = mayReadTerminal();
const storeAtStart = await waitUntilUp();
if (storeAtStart !== undefined) {
  printGuide(storeAtStart);
  if (canAsk) repeatGuideOnEnter(storeAtStart);
} else if (children.every(isRunning)) {
  console.error(
    `The gateway did not start within ${startTimeoutMs / 1000} s. The lines above may show the reason.`,
  );
}

await Promise.race(children.map(ended));
// One child has failed, so the other child is stopped too.
if (lastSignalMs === Number.NEGATIVE_INFINITY) stopAll();
const isClean = await Promise.all(children.map(ended));
process.exitCode = isClean.every(Boolean) ? 0 : 1;
if (canAsk) process.stdin.destroy();

function pathOf(file: string): string {
  return fileURLToPath(new URL(`../../../${file}`, import.meta.url));
}

function spawnNode(script: string, args: readonly string[], env: Record<string, string>): ChildProcess {
  const { TOLLGATE_ADMIN_TOKEN: _, ...inherited } = process.env;
  return spawn(process.execPath, [pathOf(script), ...args], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
    env: { ...inherited, ...env },
  });
}

/**
 * Resolves when a child process has exited. The result is true if the child exited with 0, or was interrupted before it listened for
 * signals.
 */
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

/** The store of request counts, as `/readyz` reports it. */
interface Store {
  readonly kind: 'memory' | 'redis';
  readonly available?: boolean;
  readonly reason?: string;
}

/**
 * Waits until both processes serve requests, and until the first connection to Redis has succeeded or failed. Returns undefined
 * if the start failed.
 */
async function waitUntilUp(): Promise<Store | undefined> {
  const deadlineMs = Date.now() + startTimeoutMs;
  // If a child has exited, another process may serve requests on its port.
  while (children.every(isRunning) && Date.now() < deadlineMs) {
    const [store, backend] = await Promise.all([
      readStore(),
      fetchIfOk(`http://127.0.0.1:${backendPort}/healthz`),
    ]);
    await sleep(startPollMs);
    if (store !== undefined && backend !== undefined && children.every(isRunning)) return store;
  }
  return undefined;
}

async function fetchIfOk(url: string): Promise<Response | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    return response.ok ? response : undefined;
  } catch {
    return undefined;
  }
}

/** Returns undefined until the first connection to Redis has succeeded or failed. */
async function readStore(): Promise<Store | undefined> {
  const response = await fetchIfOk(`http://127.0.0.1:${adminPort}/readyz`);
  if (response === undefined) return undefined;
  const { store } = (await response.json()) as { store: Store };
  return store.reason === 'not connected yet' ? undefined : store;
}

/**
 * Whether this process may read from its terminal. The operating system stops a background process (`npm start &`) that reads
 * from its terminal.
 */
function mayReadTerminal(): boolean {
  if (!process.stdin.isTTY) return false;
  try {
    // The fields of the file after the name in parentheses are: state, parent, process group, session, terminal, the terminal's foreground
    // group.
    const [, , , group, , , foreground] =
      readFileSync('/proc/self/stat', 'utf8').split(')').at(-1)?.split(' ') ?? [];
    return group === foreground;
  } catch {
    return false;
  }
}

function repeatGuideOnEnter(storeBefore: Store): void {
  process.stdin.on('data', async () => printGuide((await readStore()) ?? storeBefore));
  // A read error means that the terminal was closed. This process then gets SIGHUP and stops.
  process.stdin.on('error', () => {});
}

function countsAreKept({ kind, available, reason }: Store): string {
  if (kind === 'memory') return 'in memory (set REDIS_URL to keep them in Redis)';
  if (available) return 'in Redis';
  return `by this process alone, because Redis is unavailable (${reason})`;
}

function printGuide(store: Store): void {
  console.log(`
Tollgate is running. In a second terminal, send a request that gets a 200:
  curl -i -H 'Authorization: Bearer ${secrets.free}' ${baseUrl}/pets

Repeat this request until the minute limit of the Free plan is used up. The last request gets a 429:
  until curl -s -o /dev/null -w '%{http_code}\\n' -H 'Authorization: Bearer ${secrets.free}' ${baseUrl}/pets | tee /dev/stderr | grep -q 429; do :; done

Open the operators' pages, which show these requests, and enter this token:
  http://127.0.0.1:${adminPort}/
  ${shownToken}

Watch the same figures in a terminal (q ends it), or read them from the admin API:
  TOLLGATE_ADMIN=http://127.0.0.1:${adminPort} TOLLGATE_ADMIN_TOKEN=${process.env.TOLLGATE_ADMIN_TOKEN ? '"$TOLLGATE_ADMIN_TOKEN"' : adminToken} npm run --silent tollgate -- top
  curl -H ${shownAuthorization} http://127.0.0.1:${adminPort}/api/v1/state

Keys of this run:
  Free        ${secrets.free}
  Pro         ${secrets.pro}
  Business    ${secrets.business}
  Enterprise  ${secrets.enterprise}

The API reference is at ${new URL('/docs', baseUrl)}. The pet store behind the gateway is at http://127.0.0.1:${backendPort}.
Counts are kept ${countsAreKept(store)}.
Ctrl-C stops everything.${canAsk ? ' Enter prints this text again.' : ''}
`);
}
