import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { startWebhookReceiver, type WebhookReceiver } from '../capabilities/webhooks/webhook-receiver.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { readiness } from '../support/fleet.ts';
import {
  type GatewayProcess,
  makeCustomKey,
  makeKey,
  startGateway,
  testConfig,
} from '../support/gateway-process.ts';
import { countStatuses, startLoad } from '../support/load.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { openRawClient } from '../support/raw-http.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { patientGateway, type Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { killWorker, workersOf } from '../support/workers-of.ts';

const key = makeCustomKey(1_000_000_000, 1_000_000_000);
const token = makeToken('write');
const patient = {
  metricsKeptMs: 0,
  ...patientGateway,
  workerReportIntervalMs: 100,
  workerReplyTimeoutMs: 20_000,
  eventsMergedWithinMs: 600_000,
};
/** If the machine pauses during a drain, a client may send its next request up to three seconds late. */
const clientsMayPause = { drainIdleGraceMs: 3_000 };

let backend: RecordingBackend;

beforeAll(async () => {
  backend = await startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('[]')) });
});
afterAll(() => backend.close());

function configOf(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return testConfig({
    upstream: { url: backend.url, health: '/healthz' },
    workers: 2,
    redis: { url: redisUrl(), prefix: freshPrefix() },
    admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    keys: [key.entry],
    ...overrides,
  });
}

async function start(
  config: Record<string, unknown>,
  bounds: Tuning['bounds'] = {},
): Promise<GatewayProcess> {
  const gateway = await startGateway(config, {
    tuning: { bounds: { ...patient, ...bounds } },
  });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

/** Sends one request on its own connection. */
async function request({ port }: GatewayProcess, secret = key.secret): Promise<number | undefined> {
  const sent = get({
    port,
    host: '127.0.0.1',
    path: '/v1/pets',
    agent: false,
    headers: { authorization: `Bearer ${secret}` },
  });
  const [response] = await once(sent, 'response');
  await text(response);
  return response.statusCode;
}

async function statusesOf(gateway: GatewayProcess, requests: number, secret?: string) {
  const statuses = [];
  for (let sent = 0; sent < requests; sent++) statuses.push(await request(gateway, secret));
  return [...new Set(statuses)];
}

/** Waits until the metrics have counted `requests` requests. */
async function counts(gateway: GatewayProcess, requests: number): Promise<void> {
  const sum = async () => (await readMetrics(gateway.adminUrl)).sum('tollgate_requests_total');
  await until(`${requests} are counted`, async () => (await sum()) >= requests);
  expect(await sum()).toBe(requests);
}

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('a gateway with two workers', () => {
  const limited = makeCustomKey(1_000_000, 100);
  const banned = makeCustomKey(1_000_000, 1);
  const added = makeKey({ plan: 'pro' });
  let config: Record<string, unknown>;
  let gateway: GatewayProcess;
  let receiver: WebhookReceiver;

  beforeAll(async () => {
    const hookSecret = `whsec_${randomBytes(32).toString('base64')}`;
    receiver = await startWebhookReceiver(hookSecret);
    config = configOf({
      keys: './keys.yaml',
      bans: { after: 5, within: '60s', for: '10m', max: '1h' },
      notify: [
        { url: receiver.url, secretFile: 'hook', events: ['key.banned', 'quota.threshold'], at: [100] },
      ],
    });
    gateway = await startGateway(config, {
      tuning: { bounds: { ...patient, ...clientsMayPause } },
      files: { 'keys.yaml': [key.entry, limited.entry, banned.entry], hook: hookSecret },
    });
  });
  afterAll(() => Promise.all([gateway.stop('SIGKILL'), receiver.close()]));

  it('keeps a limit exactly over its workers, and each of them serves', async () => {
    const load = startLoad({
      origins: [`http://127.0.0.1:${gateway.port}`],
      secrets: [limited.secret],
      clients: 32,
    });
    await until('requests are answered', () => load.responses.length > 300);
    await expect
      .poll(async () => (await workersOf(gateway, token.token)).every(({ connections }) => connections > 0))
      .toBe(true);
    const { responses, failures } = await load.stop();
    expect(failures).toEqual([]);
    expect(countStatuses(responses)).toEqual({ 200: 100, 429: responses.length - 100 });
    // A delivery may be repeated, always with the same id.
    const reached = () =>
      new Map(
        receiver.received
          .filter(({ type, data }) => type === 'quota.threshold' && data.key === limited.entry.id)
          .map(({ id, data }) => [id, [data.window, data.percent, data.used]]),
      );
    await until('the receiver of webhooks gets the threshold', () => reached().size > 0);
    expect([...reached().values()]).toEqual([['day', 100, 100]]);
  });

  it('splits no log line, also when the reader of the log is slow', async () => {
    const path = `/v1/pets/${'a/'.repeat(900)}`;
    const log = gateway.child.stdout;
    log?.pause();
    const load = startLoad({
      origins: [`http://127.0.0.1:${gateway.port}`],
      secrets: [key.secret],
      clients: 16,
      requestsMax: 200,
      path,
    });
    await load.done;
    log?.resume();
    const logged = () => gateway.lines.filter((line) => `${line.path}`.startsWith('/v1/pets/a/'));
    // A line that mixes two lines is not valid JSON and would fail the test.
    await until('all are logged', () => logged().length === 200);
  });

  it('fails to start on a port in use, and leaves no worker', { tags: 'full' }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-workers-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'gateway.yaml');
    await writeFile(file, stringify(configOf({ listen: { host: '127.0.0.1', port: gateway.port } })));
    const main = fileURLToPath(new URL('../../gateway/main.ts', import.meta.url));
    const second = spawn(process.execPath, [main, '--config', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [output, [code]] = await Promise.all([text(second.stderr), once(second, 'exit')]);
    const port = `\`listen.port\` ${gateway.port} is in use on 127.0.0.1`;
    const advice =
      'another program listens there, or this gateway runs already. End that one, or write another port.';
    expect({ code, output }).toEqual({ code: 1, output: `${port}: ${advice}\n` });
  });

  it('counts a ban once in events, webhooks and metrics, whichever workers see it, and lifts it on all of them', async () => {
    const port = Number(new URL(gateway.adminUrl).port);
    const ask = (path: string, method = 'GET', json?: unknown) =>
      askAdmin(port, `/api/v1${path}`, { token: token.token, method, json });
    const bans = async () =>
      (await ask('/events')).body.events.filter(({ kind }: { kind: string }) => kind === 'ban');
    const isOfKey = (one: { readonly key?: unknown; readonly keyId?: unknown }) =>
      (one.key ?? one.keyId) === banned.entry.id;
    // The number of requests is large enough for each worker to get some after the ban has begun.
    expect(await statusesOf(gateway, 40, banned.secret)).toEqual([200, 429]);
    await until('the ban is told', async () => (await bans()).some(isOfKey));
    expect((await bans()).filter(isOfKey)).toHaveLength(1);
    const sent = () => receiver.received.filter(({ type, data }) => type === 'key.banned' && isOfKey(data));
    await until('the receiver of webhooks gets the ban', () => sent().length > 0);
    await expect
      .poll(async () => (await readMetrics(gateway.adminUrl)).sum('tollgate_bans_total'))
      .toBe((await bans()).length);

    expect((await ask(`/keys/${banned.entry.id}/unban`, 'POST')).status).toBe(200);
    await gateway.line((line) => line.ended === 'lifted' && isOfKey(line));
    expect(gateway.lines.filter((line) => line.msg === 'a key is banned' && isOfKey(line))).toHaveLength(1);
    expect(sent()).toHaveLength(1);
    const grant = { limits: { perDay: 1_000 }, untilAt: new Date(Date.now() + 60_000).toISOString() };
    expect((await ask(`/keys/${banned.entry.id}/grant`, 'POST', grant)).status).toBe(200);
    await until('every worker admits it', async () => {
      return (await statusesOf(gateway, 20, banned.secret)).join() === '200';
    });
  });

  it('applies a reload to every worker, and the valid part of an edit while another file is broken', async () => {
    expect(await statusesOf(gateway, 10, added.secret)).toEqual([401]);
    await gateway.editConfig({ ...config, plans: 'none' });
    await gateway.line(({ msg }) => `${msg}`.startsWith('the configuration was not reloaded'));
    expect((await readiness(gateway)).body.config.lastError).toContain('plans');

    await writeFile(join(gateway.configDir, 'keys.yaml'), stringify([key.entry, added.entry]));
    await gateway.line(({ msg }) => msg === 'the configuration was reloaded');
    await until('all have it', async () => {
      const { body } = await readiness(gateway);
      const state = await askAdmin(Number(new URL(gateway.adminUrl).port), '/api/v1/state', {
        token: token.token,
      });
      return state.body.processes.every(
        ({ configVersion }: { configVersion: string }) => configVersion === body.config.version,
      );
    });
    expect(await statusesOf(gateway, 20, added.secret)).toEqual([200]);
    expect((await readiness(gateway)).body.config.lastError).toContain('plans');
  });

  it('loses only the connections of a killed worker, decreases no count, and its replacement has the reload', async () => {
    const counted = async () => (await readMetrics(gateway.adminUrl)).sum('tollgate_requests_total');
    const load = startLoad({
      origins: [`http://127.0.0.1:${gateway.port}`],
      secrets: [key.secret],
      clients: 20,
      pauseMs: 100,
    });
    const workers = () => workersOf(gateway, token.token);
    await until('the connections are reported', async () => {
      const reported = (await workers()).map(({ connections }) => connections);
      return reported.reduce((sum, connections) => sum + connections, 0) >= 20;
    });
    const [victim] = await workers();
    let highest = await counted();
    let decreased = false;
    process.kill(victim?.pid ?? 0, 'SIGKILL');
    await until('another worker serves', async () => {
      const now = await counted();
      decreased ||= now < highest;
      highest = now;
      const pids = (await workers()).map(({ pid }) => pid);
      return pids.length === 2 && !pids.includes(victim?.pid ?? 0);
    });
    expect(decreased).toBe(false);
    const { responses, failures } = await load.stop();
    expect(Object.keys(countStatuses(responses))).toEqual(['200']);
    expect(failures.length).toBeLessThanOrEqual(victim?.connections ?? 0);
    expect(await statusesOf(gateway, 20, added.secret)).toEqual([200]);
  });

  it('loses no request after SIGTERM, and closes idle connections', async () => {
    const idle = await openRawClient(gateway.port);
    idle.send(`GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key.secret}\r\n\r\n`);
    await idle.response();
    const load = await startLeavingLoad(gateway);
    expect(await gateway.stop('SIGTERM')).toBe(0);
    await idle.closed;
    const { responses, failures } = await load.done;
    expect(failures).toEqual([]);
    expect(Object.keys(countStatuses(responses))).toEqual(['200']);
  });
});

it('an edit that needs a restart has no effect on a replaced worker either, and the admin API reports it', {
  tags: 'full',
}, async () => {
  const limited = makeCustomKey(1_000_000, 30);
  const prefix = freshPrefix();
  const config = configOf({ keys: [limited.entry], redis: { url: redisUrl(), prefix } });
  const gateway = await start(config);
  expect(await statusesOf(gateway, 30, limited.secret)).toEqual([200]);

  await gateway.editConfig({ ...config, redis: { url: redisUrl(), prefix: freshPrefix() }, bodyBytesMax: 5 });
  const waits = 'a change of redis takes effect at the next start';
  await gateway.line(({ msg }) => msg === waits);
  await gateway.line(({ msg }) => msg === 'the configuration was reloaded');
  expect((await readiness(gateway)).body).toMatchObject({
    reasons: [waits],
    config: { waitsForRestart: ['redis'] },
  });
  const { body } = await askAdmin(Number(new URL(gateway.adminUrl).port), '/api/v1/settings', {
    token: token.token,
  });
  expect([body.redis.prefix, body.bodyBytesMax]).toEqual([prefix, 5]);

  for (const { pid } of await workersOf(gateway, token.token)) {
    await killWorker(gateway, pid, token.token);
  }
  expect(await statusesOf(gateway, 10, limited.secret)).toEqual([429]);
});

it('a worker whose event loop hangs is killed, and the pause before its replacement grows while replacements exit early', {
  tags: 'full',
}, async () => {
  const gateway = await start(configOf(), {
    workerPauseMs: 20,
    workerPauseMaxMs: 50,
    // A worker that runs for `workerSteadyMs` would reset the pause. No worker of this test runs for ten minutes, even on a slow machine.
    workerSteadyMs: 600_000,
    // On a busy machine, the supervisor may receive no message from a worker for several seconds.
    workerSilenceMaxMs: 20_000,
  });
  const [hangs] = await workersOf(gateway, token.token);
  process.kill(hangs?.pid ?? 0, 'SIGSTOP');
  const isTold = () =>
    gateway.lines.some(
      ({ msg, pid }) => msg === 'a worker does not respond, and is killed' && pid === hangs?.pid,
    );
  await until('it is killed, though the supervisor pauses now and then', async () => {
    gateway.child.kill('SIGSTOP');
    await sleep(3 * patient.workerReportIntervalMs);
    gateway.child.kill('SIGCONT');
    await sleep(10 * patient.workerReportIntervalMs);
    return isTold();
  });
  await until('another one serves', async () => {
    const pids = (await workersOf(gateway, token.token)).map(({ pid }) => pid);
    return pids.length === 2 && !pids.includes(hangs?.pid ?? 0);
  });
  for (let kill = 0; kill < 2; kill++) {
    const [victim] = await workersOf(gateway, token.token);
    await killWorker(gateway, victim?.pid ?? 0, token.token);
  }
  await gateway.line(({ pauseMs }) => pauseMs === 50);
  const pauses = gateway.lines.flatMap(({ msg, pauseMs }) =>
    msg === 'a worker ended, and is replaced' ? [pauseMs] : [],
  );
  expect(pauses).toEqual([20, 40, 50]);
});

it('a worker may be silent for longer while it starts, and a start that takes too long names its phase', async () => {
  // The start of a worker always takes longer than this timeout.
  const bounds = { workerStartTimeoutMs: 50, workerSilenceMaxMs: 10, workerReportIntervalMs: 20 };
  await expect(start(configOf(), bounds)).rejects.toThrow(
    /worker [12] ended: after 0\.05 s it does not listen, and still (loads its code|reads its settings|opens its socket)/,
  );
});

it('while a worker is missing another worker serves new connections, and /readyz gives the number of workers', {
  tags: 'full',
}, async () => {
  const gateway = await start(configOf(), { workerPauseMs: 10_000 });
  const [victim] = await workersOf(gateway, token.token);
  if (victim === undefined) throw new Error('there is no worker');
  process.kill(victim.pid, 'SIGKILL');
  const line = await gateway.line(({ msg }) => msg === 'a worker ended, and is replaced');
  expect(line).toMatchObject({ worker: 1, pid: victim.pid, reason: 'SIGKILL', pauseMs: 10_000 });
  const { httpStatus, body } = await readiness(gateway);
  expect({ httpStatus, ...body }).toMatchObject({
    httpStatus: 200,
    status: 'degraded',
    reasons: ['1 of 2 workers serve'],
    workers: { configured: 2, serving: 1, replaced: 1 },
  });
  expect(await statusesOf(gateway, 60)).toEqual([200]);
  await until('both serve', async () => (await workersOf(gateway, token.token)).length === 2);
  expect(await statusesOf(gateway, 60)).toEqual([200]);
  await counts(gateway, 120);
  const { body: events } = await askAdmin(Number(new URL(gateway.adminUrl).port), '/api/v1/events', {
    token: token.token,
  });
  expect(events.events).toMatchObject([{ kind: 'worker_ended', text: expect.stringContaining('SIGKILL') }]);
});

/**
 * Starts clients that stop when the gateway closes their connections or accepts no new connections. Waits until some requests have had a
 * response.
 */
async function startLeavingLoad({ port }: { readonly port: number }) {
  const load = startLoad({
    origins: [`http://127.0.0.1:${port}`],
    secrets: [key.secret],
    clients: 20,
    pauseMs: 10,
    leavesOnClose: true,
  });
  await until('requests are answered', () => load.responses.length > 100);
  return load;
}

it('the workers of a killed supervisor finish their requests and end', { tags: 'full' }, async () => {
  const gateway = await start(configOf(), clientsMayPause);
  const pids = (await workersOf(gateway, token.token)).map(({ pid }) => pid);
  const load = await startLeavingLoad(gateway);
  await gateway.stop('SIGKILL');
  await until('the workers are gone', () => !pids.some(isThere));
  const { responses, failures } = await load.done;
  expect(failures).toEqual([]);
  expect(Object.keys(countStatuses(responses))).toEqual(['200']);
});

it('a SIGHUP to all processes, as a closed terminal sends it, loses no request', {
  tags: 'full',
}, async () => {
  const gateway = await start(configOf(), clientsMayPause);
  const pids = (await workersOf(gateway, token.token)).map(({ pid }) => pid);
  const load = await startLeavingLoad(gateway);
  for (const pid of pids) process.kill(pid, 'SIGHUP');
  expect(await gateway.stop('SIGHUP')).toBe(0);
  const { responses, failures } = await load.done;
  expect(failures).toEqual([]);
  expect(Object.keys(countStatuses(responses))).toEqual(['200']);
});

it('a second SIGINT ends supervisor and workers at once', { tags: 'full' }, async () => {
  const gateway = await start(configOf(), { drainGraceMs: 60_000, signalEchoMs: 0 });
  const pids = (await workersOf(gateway, token.token)).map(({ pid }) => pid);
  gateway.child.kill('SIGTERM');
  await gateway.line(({ msg }) => msg === 'draining');
  expect(await gateway.stop('SIGINT')).toBe(1);
  await until('the workers are gone', () => !pids.some(isThere));
});

it('any worker resumes a TLS session', { tags: 'full' }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-workers-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const pair = makeCertificate();
  const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  await Promise.all([writeFile(tls.cert, pair.cert), writeFile(tls.key, pair.key)]);
  const gateway = await start(configOf({ listen: { host: '127.0.0.1', port: 0, tls } }));

  let session: Buffer | undefined;
  const reused = [];
  for (let connection = 0; connection < 20; connection++) {
    const socket = connect({ port: gateway.port, rejectUnauthorized: false, ...(session && { session }) });
    const ticket = once(socket, 'session');
    socket.resume();
    await once(socket, 'secureConnect');
    if (session !== undefined) reused.push(socket.isSessionReused());
    // A resumed session receives no further ticket.
    else [session] = await ticket;
    socket.destroy();
  }
  expect(new Set(reused)).toEqual(new Set([true]));
});
