import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { freePort } from '../../support/free-port.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { runInTerminal } from '../../support/pseudo-terminal.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { startRedis } from '../../support/start-redis.ts';
import { startStubAdmin } from '../../support/stub-admin.ts';
import { patientGateway } from '../../support/tuning.ts';

const token = makeToken('read');
const key = makeKey({ id: 'acme' });

let backend: RecordingBackend;
beforeAll(async () => {
  backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('{}')) });
  return () => backend.close();
});

const open: RunningGateway[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((gateway) => gateway.stop('SIGKILL')));
});

interface Started {
  readonly gateway: RunningGateway;
  readonly env: Record<string, string>;
}

/**
 * `recentFiguresMs` is long, so that the counted requests are still visible when a busy machine has started the command. With the bounds of
 * `patientGateway`, a slow target does not count as silent.
 */
const bounds = { ...patientGateway, recentFiguresMs: 30_000 };

async function start(port = 0): Promise<Started> {
  const admin = { host: '127.0.0.1', port, tokens: [token.entry] };
  const windowsMs = freshWindows(Date.now());
  const config = testConfig({
    upstream: { url: backend.url },
    keys: [key.entry, makeKey({ id: 'idle' }).entry],
    admin,
  });
  const gateway = await startGatewayHere(config, { tuning: { windowsMs, bounds } });
  open.push(gateway);
  return { gateway, env: { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token } };
}

async function send({ baseUrl }: RunningGateway, times: number): Promise<void> {
  const headers = { authorization: `Bearer ${key.secret}` };
  for (let request = 0; request < times; request++)
    await (await fetch(`${baseUrl}/pets`, { headers })).arrayBuffer();
}

const enter = '\u001b[?1049h';
const leave = '\u001b[?25h\u001b[?1049l';
const size = { columns: 80, rows: 24 };

describe('tollgate top --once', () => {
  it('shows rates, times, processes, targets and keys, and ends', async () => {
    const { gateway, env } = await start();
    await send(gateway, 63);
    let stdout = '';
    const show = async () => {
      ({ stdout } = await runTollgate(['top', '--once'], env));
      return stdout;
    };
    await expect.poll(show).toMatch(/^requests\/s +[1-9][\d.]* .* 2xx [1-9].* 429 0\.[1-9]/m);
    expect(stdout).toMatch(
      /^tollgate {2}test {2}configuration [0-9a-f]{12} +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\nAll well\. .*\n/,
    );
    expect(stdout).toMatch(/^gateway +p50 [\d.]+ ms +p99 [\d.]+ ms$/m);
    expect(stdout).toMatch(
      new RegExp(`^\\S+:${process.pid} +serving +\\d+ \\w+ .* 1 of 1 +[0-9a-f]{8}$`, 'm'),
    );
    expect(stdout).toMatch(/^default +127\.0\.0\.1:\d+ +healthy +0$/m);
    expect(stdout).toMatch(/^acme +63 +limited +free +acme +3 +limited +free$/m);
  });
});

describe('tollgate top at a terminal', () => {
  /** One gateway for all tests that do not change it. */
  let shared: Started;
  beforeAll(async () => {
    shared = await start();
    open.pop();
  });
  afterAll(() => shared.gateway.stop('SIGKILL'));

  for (const [name, keys, tags] of [
    ['q', 'q', []],
    ['Ctrl-C', '\u0003', ['full']],
  ] as const)
    it(`redraws every second within the screen, and restores the terminal after ${name}`, {
      tags: [...tags],
    }, async () => {
      const { gateway, env } = shared;
      const terminal = await runInTerminal(['top'], env, size);
      await expect.poll(() => terminal.lines().join('\n')).toContain('All well.');
      await send(gateway, 5);
      await expect.poll(() => terminal.lines().join('\n')).toMatch(/^requests\/s +(?!0\.0)/m);
      const lines = terminal.lines();
      expect(lines.length).toBeLessThanOrEqual(size.rows);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(size.columns);
      terminal.type(keys);
      expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true });
      expect(terminal.output().split(enter)).toHaveLength(2);
      expect(terminal.output().endsWith(leave)).toBe(true);
    });

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    it(`restores the terminal after ${signal}`, {
      tags: signal === 'SIGTERM' ? [] : ['full'],
    }, async () => {
      const { env } = shared;
      const terminal = await runInTerminal(['top'], env, size);
      await expect.poll(() => terminal.lines().join('\n')).toContain('All well.');
      terminal.signal(signal);
      expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true });
      expect(terminal.output().endsWith(leave)).toBe(true);
    });

  it('shows that the gateway does not respond any more, and continues when it is back', {
    tags: 'full',
  }, async () => {
    const port = await freePort();
    const { gateway, env } = await start(port);
    const terminal = await runInTerminal(['top'], env, size);
    const picture = () => terminal.lines().join('\n');
    await expect.poll(picture).toContain('All well.');
    await gateway.stop('SIGKILL');
    await expect.poll(picture).toMatch(/^No server answers at http:.* \(connect ECONNREFUSED/m);
    await expect.poll(picture).toMatch(/The figures are those of\s+[\d:]+\s+UTC/);
    expect(terminal.lines().length).toBeLessThanOrEqual(size.rows);
    await start(port);
    await expect.poll(picture).toMatch(/^(?!.*No server answers).*All well./s);
    terminal.type('q');
    expect(await terminal.ended()).toEqual({ exitCode: 0, isRestored: true });
  });

  it('shows the state of the gateway and its own counts of the keys while Redis is away', {
    tags: 'full',
  }, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const admin = { host: '127.0.0.1', port: 0, tokens: [token.entry] };
    const settings = { upstream: { url: backend.url }, keys: [key.entry], admin };
    const gateway = await startGatewayHere(
      testConfig({ ...settings, redis: { url: redis.url, prefix: 'top' } }),
    );
    open.push(gateway);
    const env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token };
    const terminal = await runInTerminal(['top'], env, size);
    const picture = () => terminal.lines().join('\n');
    await expect.poll(picture).toContain('store  Redis, there');
    await send(gateway, 5);
    await redis.kill();
    await expect.poll(picture).toContain('Redis, away');
    await expect.poll(picture).toMatch(new RegExp(`^${key.entry.id.slice(0, 20)}`, 'm'));
    await expect.poll(picture).toMatch(/^default +127\.0\.0\.1:\d+ +healthy/m);
    terminal.type('q');
    await terminal.ended();
    const { exitCode, stdout } = await runTollgate(['top', '--once', '--json'], env);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      state: { isComplete: false },
      busiest: [{ id: key.entry.id, offered24h: 5 }],
    });
  });

  it('shows that the gateway is silent, and ends without waiting for it', { tags: 'full' }, async () => {
    const { env } = shared;
    let isSilent = false;
    const stub = await startStubAdmin((path) => (isSilent ? undefined : { body: said[path] }));
    const said = Object.fromEntries(
      await Promise.all(
        ['/state', '/keys?sort=offered&limit=10', '/keys?sort=refused&limit=10'].map(async (path) => {
          const headers = { authorization: `Bearer ${token.token}` };
          const response = await fetch(`${env.TOLLGATE_ADMIN}/api/v1${path}`, { headers });
          return [`/api/v1${path}`, await response.json()] as const;
        }),
      ),
    );
    const terminal = await runInTerminal(['top'], { ...env, TOLLGATE_ADMIN: stub.url }, size);
    await expect.poll(() => terminal.lines().join('\n')).toContain('All well.');
    isSilent = true;
    await expect
      .poll(() => terminal.lines().join('\n'))
      .toMatch(/^The gateway has not answered for \d+ s\./m);
    terminal.type('q');
    const waited = sleep(8_000, 'it is still there', { ref: false });
    expect(await Promise.race([terminal.ended(), waited])).toEqual({ exitCode: 0, isRestored: true });
  });

  it('ends with a sentence below its last screen when its token is removed', {
    tags: 'full',
  }, async () => {
    const { gateway, env } = await start();
    const terminal = await runInTerminal(['top'], env, size);
    await expect.poll(() => terminal.lines().join('\n')).toContain('All well.');
    const other = makeToken('read');
    await gateway.editConfig(
      testConfig({
        upstream: { url: backend.url },
        keys: [key.entry],
        admin: { host: '127.0.0.1', port: 0, tokens: [other.entry] },
      }),
    );
    expect(await terminal.ended()).toEqual({ exitCode: 1, isRestored: true });
    expect(terminal.output().split(leave).at(-1)).toMatch(/^The gateway at .* does not know the token of /);
  });

  it.each([
    ['NO_COLOR', { NO_COLOR: '1' }, false],
    ['a usual terminal', {}, true],
  ])('has colours with %s: %s', async (_, more, hasColours) => {
    const { env } = shared;
    const terminal = await runInTerminal(['keys', 'list'], { ...env, ...more }, size);
    await terminal.ended();
    expect(terminal.output()).toContain('unused');
    expect(terminal.output().includes('\u001b[')).toBe(hasColours);
  });

  it('prints the screen once if the terminal cannot rewrite a line', async () => {
    const { env } = shared;
    const terminal = await runInTerminal(['top'], { ...env, TERM: 'dumb' }, size);
    expect((await terminal.ended()).exitCode).toBe(0);
    expect(terminal.output()).not.toContain('\u001b');
    expect(terminal.output()).toContain('All well.');
  });
});
