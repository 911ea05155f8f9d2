import { spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { requireProgram } from '../support/require-program.ts';
import { startRedis } from '../support/start-redis.ts';
import { patientStore } from '../support/tuning.ts';

const page = new URL('../../config/guide/backup.md', import.meta.url);
const plans = { free: { perMinute: 60, perDay: 1_000 } };
const token = makeToken('write', 'alice');
const [acme, banned, gone] = ['acme', 'banned', 'gone'].map((id) => makeKey({ id }));

/** The first block of commands below a heading of the page. */
async function commandsOf(heading: string): Promise<string> {
  const [, section = ''] = (await readFile(page, 'utf8')).split(`\n## ${heading}\n`);
  const [block = ''] = /^ {4}.*(?:\n {4}.*)*/m.exec(section) ?? [];
  return block.replaceAll(/^ {4}/gm, '');
}

it('the commands of the page restore counts, bans, grants, keys, usage and changes on an empty Redis', async () => {
  await requireProgram({ names: ['redis-cli'], packageName: 'redis-tools', advice: 'redis-cli is missing' });
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-backup-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const data = await mkdtemp(join(folder, 'redis-'));
  const server = await startRedis(['--dir', data, '--appendonly', 'yes']);
  onTestFinished(() => server.stop());
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  onTestFinished(() => backend.close());
  const windowsMs = freshWindows(Date.now());
  const run = async (heading: string) => {
    const env = { PATH: process.env.PATH, REDIS_URL: server.url, REDIS_DIR: data, CONFIG_FILES: 'config' };
    const script = await commandsOf(heading);
    const { status, stderr } = spawnSync('bash', ['-euc', script], { cwd: folder, env, encoding: 'utf8' });
    expect([status, script.length > 100, stderr]).toEqual([0, true, expect.any(String)]);
  };
  const start = async () => {
    const gateway = await startGatewayHere(
      {
        environment: 'production',
        baseUrl: 'http://127.0.0.1/v1',
        listen: { host: '127.0.0.1', port: 0 },
        plans,
        upstream: { url: backend.url },
        redis: { url: server.url, prefix: 'tollgate-production' },
        keys: { file: './keys.yaml', directory: true },
        admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      },
      {
        files: { 'keys.yaml': [acme?.entry, banned?.entry, gone?.entry] },
        tuning: { windowsMs, bounds: patientStore },
      },
    );
    onTestFinished(async () => void (await gateway.stop()));
    const port = Number(new URL(gateway.adminUrl).port);
    const ask = async (method: string, path: string, json?: unknown) => {
      const reply = await askAdmin(port, `/api/v1${path}`, { token: token.token, method, json });
      expect([method, path, reply.status < 300 ? 'good' : reply.text]).toEqual([method, path, 'good']);
      return reply.body;
    };
    const send = async (secret = '') => {
      const headers = { authorization: `Bearer ${secret}` };
      const response = await fetch(`${gateway.baseUrl}/pets`, { headers });
      await response.arrayBuffer();
      return [response.status, response.headers.get('x-ratelimit-remaining')];
    };
    /** What the gateway reads from Redis about all keys. */
    const state = async () => {
      const keys = ['acme', 'banned', 'guest', 'revoked'].map(async (id) => {
        const { windows, ban, grant, definition, strikes, requests24h } = await ask('GET', `/keys/${id}`);
        const used = windows.map((one: { name: string; used: number }) => [one.name, one.used]);
        const { rows } = await ask('GET', `/keys/${id}/usage?step=hour`);
        return { id, used, ban, grant, definition, strikes, requests24h, rows };
      });
      const { changes } = await ask('GET', '/changes');
      const { keys: directory } = await ask('GET', '/directory');
      return { keys: await Promise.all(keys), changes, directory };
    };
    return { ...gateway, ask, send, state };
  };

  const first = await start();
  const { secret: guest } = await first.ask('POST', '/keys', { id: 'guest', plan: 'free', name: 'Guest' });
  const { secret: revoked } = await first.ask('POST', '/keys', { id: 'revoked', plan: 'free' });
  await first.ask('PATCH', '/keys/revoked', { disabled: true });
  const untilAt = new Date(Date.now() + 86_400_000).toISOString();
  await first.ask('POST', '/keys/banned/ban', { untilAt, reason: 'asked by mail' });
  await first.ask('POST', '/keys/guest/grant', { limits: { perDay: 5_000 }, untilAt });
  for (let request = 0; request < 7; request++) await first.send(acme?.secret);
  for (let request = 0; request < 3; request++) await first.send(guest);
  await first.ask('POST', '/flush');
  const before = await first.state();
  expect(before.keys.map(({ used }) => used[0]?.[1])).toEqual([7, 0, 3, 0]);

  await cp(first.configDir, join(folder, 'config'), { recursive: true });
  await run('Back up');
  // A change after the backup is not in it.
  await first.ask('DELETE', '/keys/guest');
  await first.stop();
  await server.kill();
  for (const lost of [data, join(folder, 'config')]) await rm(lost, { recursive: true });
  await cp(await mkdtemp(join(folder, 'empty-')), data, { recursive: true });

  await run('Restore');
  await server.restart();
  const second = await start();
  expect(await second.state()).toEqual(before);
  expect(await second.send(acme?.secret)).toEqual([200, '52']);
  expect(await second.send(guest)).toEqual([200, '56']);
  expect(await second.send(banned?.secret)).toEqual([429, '0']);
  expect((await second.send(revoked))[0]).toBe(401);
  const restored = await readFile(join(folder, 'config/keys.yaml'), 'utf8');
  expect(restored).toContain(acme?.entry.secrets[0]?.sha256);
});
