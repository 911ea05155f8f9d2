/**
 * Measures commands that change many directory keys: their time, the p50 of customers' requests meanwhile against the p50 before, and that a
 * command that is killed half-way and run again changes every key exactly once.
 *
 * Usage: node test/bench/measure-many-keys.ts [--keys 10000]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { digestSecret } from '../../gateway/shared/secrets.ts';
import { makeToken } from '../support/admin-client.ts';
import { startGateway, testConfig } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { startRedis } from '../support/start-redis.ts';
import { spreadOf } from './statistics.ts';

const { values } = parseArgs({ options: { keys: { type: 'string', default: '10000' } } });
const count = Number(values.keys);
const requestsPerSecond = 200;
const beforeMs = 5_000;

const dir = mkdtempSync(join(tmpdir(), 'tollgate-many-'));
const token = makeToken('write', 'ada');
const customer = { secret: randomUUID() };
const redis = await startRedis();
const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('{}')) });
const gateway = await startGateway(
  testConfig({
    upstream: { url: backend.url },
    redis: { url: redis.url, prefix: `bench-${randomUUID()}:` },
    plans: { free: { perMinute: 1_000_000 }, many: { perMinute: 60, perDay: 1_000 } },
    keys: { directory: true },
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
  }),
);
try {
  await fill();
  console.log(`${count} directory keys, one customer with ${requestsPerSecond} requests a second\n`);
  const until = '2027-06-01T00:00:00Z';
  await measured('granted', ['grant', '--of-plan', 'many', '--per-day', '2000', '--until', until]);
  const out = join(dir, 'secrets.csv');
  const rotate = ['rotate', '--of-plan', 'many', '--overlap', '14d', '--out', out];
  await killedHalfWay(rotate, out);
  await measured('rotated, the other half', rotate);
  await measured('rotated already', rotate);
  console.log(`  rows in the file: ${readFileSync(out, 'utf8').trim().split('\n').length - 1}`);
  await measured('revoked', ['revoke', '--of-plan', 'many']);
  for (const action of ['grant', 'rotate', 'revoke']) console.log(`  ${action}: ${await recorded(action)}`);
} finally {
  await gateway.stop('SIGKILL');
  await backend.close();
  await redis.stop();
  rmSync(dir, { recursive: true });
}

async function fill(): Promise<void> {
  const secrets = [{ sha256: digestSecret(customer.secret) }];
  await send([{ id: 'customer', plan: 'free', secrets }]);
  const ids = Array.from({ length: count }, (_, index) => `k${index}`);
  for (let from = 0; from < count; from += 250) {
    const keys = ids.slice(from, from + 250).map((id) => ({
      id,
      plan: 'many',
      secrets: [{ sha256: digestSecret(`secret of ${id}`), createdAt: '2026-01-01' }],
    }));
    await send(keys);
  }
}

async function send(keys: readonly object[]): Promise<void> {
  const response = await ask('POST', '/directory', { keys });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}

function ask(method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${token.token}`, 'content-type': 'application/json' };
  return fetch(`${gateway.adminUrl}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
}

function start(args: readonly string[]): ChildProcess {
  const env = { PATH: process.env.PATH, TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
  return spawn(
    process.execPath,
    ['gateway/cli/tollgate.ts', 'keys', ...args, '--directory', '--yes'].filter(
      (arg) => arg !== '--directory' || !/^(grant|ban)/.test(args[0] ?? ''),
    ),
    { env: { ...env, TOLLGATE_CONFIG: '' }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
}

async function measured(name: string, args: readonly string[]): Promise<void> {
  const before = await p50During(sleep(beforeMs));
  const startedMs = performance.now();
  const child = start(args);
  if (child.stdout === null) throw new Error('standard output is a pipe');
  const exited = Promise.all([text(child.stdout), once(child, 'exit')]);
  const during = await p50During(exited);
  const seconds = (performance.now() - startedMs) / 1_000;
  const [output] = await exited;
  const ratio = (during / before).toFixed(2);
  console.log(
    `${name}: ${seconds.toFixed(1)} s; customer's p50 ${before.toFixed(2)} -> ${during.toFixed(2)} ms (${ratio}x)`,
  );
  console.log(output.replace(/^/gm, '  ').trimEnd());
}

async function killedHalfWay(args: readonly string[], out: string): Promise<void> {
  const child = start(args);
  while ((await recorded('rotate')) < count / 2) await sleep(1_000);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const rows = readFileSync(out, 'utf8').trim().split('\n').length - 1;
  console.log(`killed after ${await recorded('rotate')} of ${count}; rows in the file: ${rows}`);
}

/** The number of different keys with a change of this kind; a key with two changes fails. The record has 20,000 changes. */
async function recorded(action: string): Promise<number> {
  const seen = new Set<string>();
  let after: string | undefined;
  do {
    const page = await (await ask('GET', `/changes?limit=200${after ? `&after=${after}` : ''}`)).json();
    for (const change of page.changes) {
      if (change.action !== action) continue;
      if (seen.has(change.key)) throw new Error(`${change.key} has two changes: ${action}`);
      seen.add(change.key);
    }
    after = page.next;
  } while (after !== undefined);
  return seen.size;
}

/** The p50 of the customer's requests while something happens, ms. The requests begin at equal intervals. */
async function p50During(end: Promise<unknown>): Promise<number> {
  let isOver = false;
  void end.then(() => {
    isOver = true;
  });
  const headers = { authorization: `Bearer ${customer.secret}` };
  const times: number[] = [];
  const waiting: Promise<void>[] = [];
  while (!isOver) {
    waiting.push(
      (async () => {
        const startedMs = performance.now();
        await (await fetch(`${gateway.baseUrl}/pets`, { headers })).arrayBuffer();
        times.push(performance.now() - startedMs);
      })(),
    );
    await sleep(1_000 / requestsPerSecond);
  }
  await Promise.all(waiting);
  return spreadOf(times).median;
}
