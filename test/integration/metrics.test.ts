import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { capabilityFamilies } from '../../gateway/capabilities/lists/parts.ts';
import { type Family, families } from '../../gateway/observe/metrics/metric-families.ts';
import type { Settings } from '../../gateway/shared/model.ts';
import { capabilityCases } from '../support/capability-cases.ts';
import { configFolder } from '../support/config-folder.ts';
import { createGateway } from '../support/create-gateway.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeCustomKey, makeKey } from '../support/gateway-process.ts';
import { makeCertificate } from '../support/make-certificate.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { requireProgram } from '../support/require-program.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

let promtool: string;
beforeAll(async () => {
  promtool = await requireProgram({
    names: ['promtool'],
    packageName: 'prometheus',
    advice: 'promtool is missing: install Prometheus',
  });
});

const plans = {
  free: { perMinute: 60, perDay: 1_000, trial: { perMinute: 40, perDay: 1_000 } },
  enterprise: 'custom',
};

/** Starts a gateway. One of its keys has a high limit, and the other key has a low limit. */
async function start(
  overrides: Record<string, unknown> = {},
  edit: (settings: Settings) => Settings = (settings) => settings,
  metricsKeptMs = 0,
) {
  const backend = await startRecordingBackend({
    react: (request, socket) =>
      request.target.endsWith('/7') ? socket.destroy() : socket.write(okResponse('[]')),
  });
  const roomy = makeKey();
  const tight = makeCustomKey(2, 100);
  const settings = edit(
    await settingsOf({
      upstream: { url: backend.url, health: '/healthz' },
      plans,
      keys: [roomy.entry, tight.entry],
      addressBucket: { perMinute: 2 },
      ...overrides,
    }),
  );
  const gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds({ healthTimeoutMs: 20_000, metricsKeptMs, windowsMs: freshWindows(Date.now()) }),
  });
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
  const read = () => readMetrics(`http://127.0.0.1:${admin.port}`);
  return { send, read, roomy, tight, gateway, settings };
}

/** The problems that `promtool` reports for the text, or an empty string. */
function complaintsAbout(text: string): string {
  const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  });
  return status === 0 ? stdout + stderr : `${status}: ${stdout}${stderr}`;
}

it('every request is counted once, by operation, status and decision, and promtool has no complaints', async () => {
  const { send, read, roomy, tight } = await start();
  for (let request = 0; request < 3; request++) expect(await send(roomy.secret)).toBe(200);
  const statuses = [];
  for (let request = 0; request < 4; request++) statuses.push(await send(tight.secret, '/pets/1'));
  expect(statuses).toEqual([200, 200, 429, 429]);
  for (const path of ['/pets/1', '/pets', '/pets']) await send('nobody', path);
  expect(await send(roomy.secret, '/nothing')).toBe(404);
  expect(await send(roomy.secret, '/pets/7')).toBe(502);

  const { text, contentType, figures } = await read();
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  const requests = [...figures].filter(([name]) => name.startsWith('tollgate_requests_total'));
  expect(Object.fromEntries(requests)).toEqual({
    'tollgate_requests_total{operation="listPets",status="200",decision="admitted"}': 3,
    'tollgate_requests_total{operation="getPet",status="200",decision="admitted"}': 2,
    'tollgate_requests_total{operation="getPet",status="429",decision="refused"}': 2,
    'tollgate_requests_total{operation="getPet",status="401",decision="counted"}': 1,
    'tollgate_requests_total{operation="listPets",status="401",decision="counted"}': 1,
    'tollgate_requests_total{operation="listPets",status="429",decision="bucket_refused"}': 1,
    'tollgate_requests_total{operation="",status="404",decision="admitted"}': 1,
    'tollgate_requests_total{operation="getPet",status="502",decision="admitted"}': 1,
  });
  expect(figures.get('tollgate_refused_total{plan="enterprise",window="minute"}')).toBe(2);
  expect(figures.get('tollgate_rejected_total{code="invalid_key"}')).toBe(2);
  // The request with an unknown key is not included.
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

  expect(complaintsAbout(text)).toBe('');
});

it('a refusal by a group has its policy as label, and groups that only keys have share one label', async () => {
  const group = (perMinute: number) => ({ operations: ['listPets'], perMinute });
  const [ofPlan, replacing, own] = [
    {},
    { groups: { reports: group(2) } },
    { groups: { 'only-here': group(1), reports: group(50) } },
  ].map((members) => makeKey({ plan: 'free', ...members }));
  if (!ofPlan || !replacing || !own) throw new Error('three were made');
  const { send, read } = await start({
    plans: { free: { perMinute: 60, groups: { reports: group(1) } } },
    keys: [ofPlan.entry, replacing.entry, own.entry],
  });
  for (const { secret } of [ofPlan, replacing, own])
    for (let request = 0; request < 3; request++) await send(secret);
  const { figures } = await read();
  const refused = [...figures].filter(([name]) => name.startsWith('tollgate_refused_total'));
  expect(Object.fromEntries(refused)).toEqual({
    'tollgate_refused_total{plan="free",window="reports-minute"}': 3,
    'tollgate_refused_total{plan="free",window="group"}': 2,
  });
});

it('a trial that has refused no request has zeros, and a plan without a trial has no figure', async () => {
  const { read } = await start({ plans: { ...plans, pro: { perMinute: 60 } } });
  const ofTrials = [...(await read()).figures].filter(([name]) => name.includes('trial'));
  expect(Object.fromEntries(ofTrials)).toEqual({
    'tollgate_trial_refused_total{plan="free",window="minute"}': 0,
    'tollgate_trial_refused_total{plan="free",window="day"}': 0,
    'tollgate_trial_refused_total{plan="free",window="banned"}': 0,
  });
});

it('all scrapes within a second get one text, at the same time or one after the other', async () => {
  const { send, read, roomy } = await start({}, undefined, 60_000);
  const atOnce = await Promise.all(Array.from({ length: 50 }, read));
  expect(await send(roomy.secret)).toBe(200);
  // If the gateway created the text twice, the texts would differ, because each text contains the CPU time of the process.
  expect(new Set([...atOnce, await read()].map(({ text }) => text)).size).toBe(1);
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
    ['check', 'rules', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ].map((args) => spawnSync(promtool, args, { cwd: folder, encoding: 'utf8' }));
  expect(ran.map(({ status, stdout, stderr }) => (status === 0 ? 0 : stdout + stderr))).toEqual([0, 0, 0]);
});

it('the READMEs name every metric with its labels, and promtool has no complaints', async () => {
  const tls = makeCertificate();
  const ofCapabilities = await capabilityCases();
  const more = Object.assign({ directory: true }, ...ofCapabilities.map(({ effective }) => effective));
  const [plain, overTls] = [
    await start(),
    await start(
      {
        plans: Object.assign({}, plans, ...ofCapabilities.map((cases) => cases.plans)),
        redis: { url: redisUrl(), prefix: freshPrefix() },
      },
      (settings) => ({ ...settings, ...more, listen: { ...settings.listen, tls } }),
    ),
  ];
  await plain.send('nobody');
  for (let request = 0; request < 130; request++) await plain.send(plain.tight.secret, '/pets/7');
  const shown: Record<string, Set<string>> = {};
  for (const { text, figures } of [await plain.read(), await overTls.read()]) {
    expect(complaintsAbout(text)).toBe('');
    for (const [, name = ''] of text.matchAll(/^# TYPE (tollgate_\w+)/gm)) shown[name] ??= new Set();
    for (const series of figures.keys()) {
      const labels = [...series.matchAll(/[{,](\w+)="/g)].map(([, label = '']) => label);
      for (const label of labels) if (label !== 'le') shown[series.split('{')[0] ?? '']?.add(label);
    }
  }

  const told = [...families, ...capabilityFamilies].map(
    ({ suffix, labels = [] }: Family) => [`tollgate_${suffix}`, new Set(labels)] as const,
  );
  expect(shown).toEqual(Object.fromEntries(told));
});

it('every alert has a test', () => {
  const read = (file: string) =>
    readFileSync(new URL(`../../config/observe/${file}`, import.meta.url), 'utf8');
  const alerts = read('alerts.yml').match(/(?<=- alert: )\w+/g) ?? [];
  expect(alerts).toContain('TollgateDown');
  const tested = new Set(read('alerts.test.yml').match(/\bTollgate\w+/g));
  expect(alerts.filter((alert) => !tested.has(alert))).toEqual([]);
});

it('the rules read only metrics that the gateway has', async () => {
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

it('an upstream has its number of healthy targets, and 0 when its host name was never resolved', async () => {
  const name = 'tollgate_upstream_healthy_targets{upstream="default"}';
  const [found, lost] = [
    await start(),
    await start({ upstream: { url: 'http://nowhere.invalid', health: '/healthz' } }),
  ];
  expect((await found.read()).figures.get(name)).toBe(1);
  expect((await lost.read()).figures.get(name)).toBe(0);
});

it('keys are counted by plan and state', async () => {
  const past = '2026-01-01';
  const secretOf = (key: ReturnType<typeof makeKey>, expires?: string) => ({
    ...key.entry.secrets[0],
    ...(expires !== undefined && { expires }),
  });
  const [rotated, expired, disabled, tight] = [
    makeKey(),
    makeKey(),
    makeKey({ disabled: true }),
    makeCustomKey(1, 1_000),
  ];
  const keys = [
    { ...rotated.entry, secrets: [secretOf(makeKey(), past), secretOf(rotated)] },
    { ...expired.entry, secrets: [secretOf(expired, past)] },
    { ...disabled.entry, secrets: [secretOf(disabled, past)] },
    tight.entry,
    { ...makeKey().entry, secrets: [] },
  ];
  const { send, read } = await start({ keys });
  const counted = async () => {
    const { figures } = await read();
    const states = [...figures].filter(([name]) => name.startsWith('tollgate_keys'));
    return Object.fromEntries(states.filter(([, keys]) => keys > 0));
  };
  expect(await counted()).toEqual({
    'tollgate_keys{state="ok",plan="free"}': 1,
    'tollgate_keys{state="expired",plan="free"}': 1,
    'tollgate_keys{state="no_secret",plan="free"}': 1,
    'tollgate_keys{state="disabled",plan="free"}': 1,
    'tollgate_keys{state="ok",plan="enterprise"}': 1,
  });
  for (let request = 0; request < 102; request++) await send(tight.secret);
  expect(await counted()).toMatchObject({ 'tollgate_keys{state="banned",plan="enterprise"}': 1 });
  expect(Object.keys(await counted())).not.toContain('tollgate_keys{state="ok",plan="enterprise"}');
});

it('the expiry of each listener’s certificate is exported, and follows a reload', async () => {
  const [first, second] = [makeCertificate(), makeCertificate({ notAfterMs: Date.UTC(2040, 0, 1) })];
  const { read, gateway, settings } = await start({}, (settings) => ({
    ...settings,
    listen: { ...settings.listen, tls: first },
  }));
  const name = 'tollgate_certificate_expiry_timestamp_seconds{listener="listen"}';
  const before = await read();
  expect(before.figures.get(name)).toBe(first.notAfterMs / 1000);
  expect(before.figures.has(name.replace('"listen"', '"admin"'))).toBe(false);
  gateway.reload({ ...settings, listen: { ...settings.listen, tls: second } });
  expect((await read()).figures.get(name)).toBe(Date.UTC(2040, 0, 1) / 1000);
});

for (const keysCount of [400, 10_000])
  it(`/metrics with ${keysCount} keys and 50 operations is smaller than 200 kB, and no label has a key, a client’s address or a path`, {
    tags: keysCount === 400 ? [] : ['full'],
  }, async () => {
    const operations = Array.from({ length: 50 }, (_, index) => `operation${index}`);
    const keys = Array.from({ length: keysCount }, (_, index) =>
      makeKey({ id: `customer-${index}`, plan: index % 2 === 0 ? 'free' : 'enterprise' }, `secret-${index}`),
    );
    // A minute could end between the requests of a key.
    const limits = { perMonth: 2 };
    const folder = configFolder({ 'openapi.yaml': apiOf(operations) });
    const { send, read } = await start({
      api: folder.pathOf('openapi.yaml'),
      keys: keys.map(({ entry }) => (entry.plan === 'enterprise' ? { ...entry, limits } : entry)),
      addressBucket: { perMinute: 1_000_000 },
    });
    // Sends requests with different keys, so that each operation has every status that this gateway and backend can return.
    let next = 0;
    for (const operation of operations) {
      const statuses: number[] = [];
      for (const path of [`/${operation}/1`, `/${operation}/7`]) {
        const secret = `secret-${next++ * 2}`;
        statuses.push(await send(secret, path), await send(`nobody-${next}`, path));
      }
      const tight = `secret-${next * 2 + 1}`;
      for (let request = 0; request < 3; request++) statuses.push(await send(tight, `/${operation}/1`));
      expect(statuses).toEqual([200, 401, 502, 401, 200, 200, 429]);
    }

    const { text, figures, sum } = await read();
    expect(sum('tollgate_keys')).toBe(keysCount);
    expect(sum('tollgate_requests_total')).toBe(350);
    expect(Buffer.byteLength(text)).toBeLessThan(200_000);
    const labels = new Set<string>();
    for (const series of figures.keys()) {
      if (!series.startsWith('tollgate_')) continue;
      for (const [, label] of series.matchAll(/[{,](\w+)="/g)) labels.add(label ?? '');
    }
    const known =
      'operation status decision code plan window state result upstream target cause fault version le';
    expect([...labels].toSorted()).toEqual(known.split(' ').toSorted());
    expect(text).not.toMatch(/customer-|secret-|nobody-|\/operation/);
  });

function apiOf(operations: readonly string[]): string {
  const paths = operations.map((id) => `  /${id}/{petId}:\n    get: { operationId: ${id} }\n`);
  return `openapi: 3.1.0\ninfo: { title: Test, version: 1.0.0 }\npaths:\n${paths.join('')}`;
}
