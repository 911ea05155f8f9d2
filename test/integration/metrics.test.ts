import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { createGateway } from '../../gateway/gateway.ts';
import { makeCustomKey, makeKey } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { requireProgram } from '../support/require-program.ts';
import { settingsOf } from '../support/settings-of.ts';

let promtool: string;
beforeAll(async () => {
  promtool = await requireProgram({
    names: ['promtool'],
    packageName: 'prometheus',
    advice: 'promtool is missing: install Prometheus',
  });
}, 120_000);

/** A gateway, and a function that reads its metrics by name with labels. */
async function start() {
  const backend = await startRecordingBackend({
    react: (request, socket) =>
      request.target.endsWith('/7') ? socket.destroy() : socket.write(okResponse('[]')),
  });
  const roomy = makeKey();
  const tight = makeCustomKey(2, 100);
  const settings = await settingsOf({
    upstream: { url: backend.url, health: '/healthz' },
    plans: { free: { perMinute: 60, perDay: 1_000 }, enterprise: 'custom' },
    keys: [roomy.entry, tight.entry],
    addressBucket: { perMinute: 2 },
  });
  const gateway = createGateway({ settings, log: { logger: pino({ level: 'silent' }), access: () => {} } });
  const { listen, admin } = await gateway.start();
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  });
  const send = async (secret: string, path = '/pets') => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`http://127.0.0.1:${listen.port}/v1${path}`, { headers });
    await response.arrayBuffer();
    return response.status;
  };
  const read = async () => {
    const response = await fetch(`http://127.0.0.1:${admin.port}/metrics`);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await response.text();
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const figures = new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
    );
    return { text, figures };
  };
  return { send, read, roomy, tight, gateway, settings };
}

it('every request is counted once, by operation, status and decision, and promtool has no complaints', async () => {
  const { send, read, roomy, tight } = await start();
  for (let request = 0; request < 3; request++) expect(await send(roomy.secret)).toBe(200);
  const statuses = [];
  for (let request = 0; request < 4; request++) statuses.push(await send(tight.secret, '/pets/1'));
  expect(statuses).toEqual([200, 200, 429, 429]);
  for (let request = 0; request < 3; request++) await send('nobody');
  expect(await send(roomy.secret, '/nothing')).toBe(404);
  expect(await send(roomy.secret, '/pets/7')).toBe(502);

  const { text, figures } = await read();
  const requests = [...figures].filter(([name]) => name.startsWith('tollgate_requests_total'));
  expect(Object.fromEntries(requests)).toEqual({
    'tollgate_requests_total{operation="listPets",status="200",decision="admitted"}': 3,
    'tollgate_requests_total{operation="getPet",status="200",decision="admitted"}': 2,
    'tollgate_requests_total{operation="getPet",status="429",decision="refused"}': 2,
    'tollgate_requests_total{operation="listPets",status="401",decision="counted"}': 2,
    'tollgate_requests_total{operation="listPets",status="429",decision="bucket_refused"}': 1,
    'tollgate_requests_total{operation="",status="404",decision="admitted"}': 1,
    'tollgate_requests_total{operation="getPet",status="502",decision="admitted"}': 1,
  });
  expect(figures.get('tollgate_refused_total{plan="enterprise",window="minute"}')).toBe(2);
  expect(figures.get('tollgate_rejected_total{code="invalid_key"}')).toBe(2);
  expect(figures.get('tollgate_deprecated_requests_total{operation="getPet"}')).toBe(5);
  expect(figures.get('tollgate_operation_sunset_timestamp_seconds{operation="getPet"}')).toBe(
    Date.UTC(2030, 11, 5) / 1000,
  );
  expect(figures.get('tollgate_upstream_failures_total{cause="upstream_failed"}')).toBe(1);
  expect(figures.get('tollgate_request_duration_seconds_count')).toBe(12);
  expect(figures.get('tollgate_request_duration_seconds_bucket{le="+Inf"}')).toBe(12);
  expect(figures.get('tollgate_decision_duration_seconds_count')).toBe(9);
  expect(figures.get('tollgate_requests_in_flight')).toBe(0);
  for (const secret of [roomy.secret, tight.secret]) expect(text).not.toContain(secret);
  expect(text).not.toContain(roomy.entry.id);

  const checked = spawnSync(promtool, ['check', 'metrics'], { input: text, encoding: 'utf8' });
  expect([checked.status, checked.stdout + checked.stderr]).toEqual([0, '']);
});

it('a ban is counted once, by plan', async () => {
  const { send, read, tight } = await start();
  for (let request = 0; request < 130; request++) await send(tight.secret);
  const { figures } = await read();
  expect(figures.get('tollgate_bans_total{plan="enterprise"}')).toBe(1);
});

it('the alert rules are valid, and fire when they should', () => {
  const folder = fileURLToPath(new URL('../../config/observe', import.meta.url));
  const ran = [
    ['check', 'config', 'prometheus.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ].map((args) => spawnSync(promtool, args, { cwd: folder, encoding: 'utf8' }));
  expect(ran.map(({ status, stdout, stderr }) => (status === 0 ? 0 : stdout + stderr))).toEqual([0, 0]);
});

it('every metric that the rules read is one of the gateway’s', async () => {
  const { read } = await start();
  const rules = readFileSync(new URL('../../config/observe/alerts.yml', import.meta.url), 'utf8');
  const { text } = await read();
  const known = new Set(text.match(/(?<=^# TYPE )\w+/gm));
  for (const name of rules.match(/tollgate_\w+/g) ?? []) expect([...known]).toContain(name);
});

it('the state of configuration, store and targets is exported', async () => {
  const { read, gateway, settings } = await start();
  gateway.reportFailedReload('tollgate.yaml:1:1: not valid');
  const before = (await read()).figures;
  expect(before.get('tollgate_config_last_reload_successful')).toBe(0);
  expect(before.get(`tollgate_config_info{version="${settings.version}"}`)).toBe(1);
  expect(before.get('tollgate_store_available')).toBe(1);
  gateway.reload(settings);
  const after = (await read()).figures;
  expect(after.get('tollgate_config_last_reload_successful')).toBe(1);
  const healthy = [...after].filter(([name]) => name.startsWith('tollgate_target_healthy'));
  expect(healthy).toEqual([[expect.stringMatching(/upstream="default",target="127\.0\.0\.1:\d+"/), 1]]);
});
