import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { deprecatedMax } from '../../../gateway/admin/wires/operations.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { inspect } from '../../support/inspect.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { startRedis } from '../../support/start-redis.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

/** `GET /deprecated` and `operations --deprecated`, with more deprecated operations than one response lists. */

const token = makeToken('read');
const [acme, globex, quiet] = [
  makeKey({ id: 'acme', plan: 'pro', name: 'Acme' }),
  makeKey({ id: 'globex', plan: 'pro' }),
  makeKey({ id: 'quiet', plan: 'pro' }),
];
const deprecated = (operationId: string, sunset?: string, after?: string) => ({
  get: {
    operationId,
    deprecated: true,
    'x-deprecated-since': '2020-01-01',
    ...(sunset && { 'x-deprecated-sunset': sunset }),
    ...(after && { 'x-after-sunset': after }),
  },
});
/** Operations without a sunset, which come after the three operations with one. */
const endless = Array.from({ length: deprecatedMax }, (_, index) => `endless${index}`);
const paths = {
  '/current': { get: { operationId: 'current' } },
  ...Object.fromEntries(endless.map((id) => [`/${id}`, deprecated(id)])),
  '/late': deprecated('late', '2090-02-01'),
  '/past': deprecated('past', '2021-01-01', 'serve'),
  '/soon': deprecated('soon', '2090-01-01'),
};

let backend: RecordingBackend;
let gateway: RunningGateway;
beforeAll(async () => {
  backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('{}')) });
  gateway = await start({});
  await send(acme.secret, 3, 'soon');
  await send(globex.secret, 4, 'soon');
  await send(globex.secret, 1, 'past');
  await send(quiet.secret, 2, 'current');
});
afterAll(async () => {
  await gateway.stop('SIGKILL');
  await backend.close();
});

const start = (settings: object) =>
  startGatewayHere(
    testConfig({
      upstream: { url: backend.url },
      keys: [acme.entry, globex.entry, quiet.entry],
      api: './api.json',
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      ...settings,
    }),
    { files: { 'api.json': { paths } }, tuning: { bounds: { ...patientStore, usageFlushIntervalMs: 200 } } },
  );

async function send(secret: string, times: number, path: string, to = gateway): Promise<void> {
  for (let request = 0; request < times; request++) {
    const headers = { authorization: `Bearer ${secret}` };
    await (await fetch(`${to.baseUrl}/${path}`, { headers })).arrayBuffer();
  }
}

const ask = (path: string, of = gateway) =>
  askAdmin(Number(new URL(of.adminUrl).port), `/api/v1${path}`, { token: token.token });

const run = (...args: string[]) =>
  runTollgate(args, { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token.token });

it('lists deprecated operations by their sunset, each with its callers, and says how many it leaves out', async () => {
  const { operations, more, recordFromAt } = (await ask('/deprecated')).body;
  expect(operations.map(({ operationId }: { operationId: string }) => operationId)).toEqual([
    ...['past', 'soon', 'late'],
    ...endless.slice(0, deprecatedMax - 3),
  ]);
  expect([more, recordFromAt]).toEqual([3, undefined]);
  expect(operations.slice(0, 3)).toMatchObject([
    { deprecation: { afterSunset: 'serve' }, callers: [{ id: 'globex', requests: 1 }] },
    {
      path: '/soon',
      deprecation: { sunsetAt: '2090-01-01T00:00:00.000Z', afterSunset: 'gone' },
      callers: [
        { id: 'globex', requests: 4 },
        { id: 'acme', name: 'Acme', plan: 'pro', requests: 3, clientErrors: 0 },
      ],
    },
    { operationId: 'late', callers: [] },
  ]);
});

it('counts the callers that the limit leaves out, for each operation', async () => {
  const { operations } = (await ask('/deprecated?limit=1')).body;
  const shown = operations.map(({ callers, more }: { callers: object[]; more?: number }) => [
    callers.length,
    more,
  ]);
  expect(shown.slice(0, 3)).toEqual([
    [1, undefined],
    [1, 1],
    [0, undefined],
  ]);
});

it('says where the usage record begins, only if the period begins earlier', async () => {
  for (const path of ['/deprecated', '/operations', '/operations/soon/callers']) {
    expect([path, (await ask(path)).body.recordFromAt]).toEqual([path, undefined]);
    const { recordFromAt, fromAt } = (await ask(`${path}?from=2026-01-01`)).body;
    expect([path, recordFromAt]).toEqual([path, expect.stringMatching(/T00:00:00Z$/)]);
    expect([path, Date.parse(fromAt)]).toEqual([path, Date.parse('2026-01-01')]);
  }
});

it('has no callers in a period before the requests', async () => {
  const { operations } = (await ask('/deprecated?from=2026-01-01&to=2026-01-02')).body;
  expect(operations.flatMap(({ callers }: { callers: object[] }) => callers)).toEqual([]);
  expect((await ask('/deprecated?from=2026-01-02&to=2026-01-01')).status).toBe(400);
});

it('counts no hour that begins at the end of a past period', async () => {
  const hourMs = 3_600_000;
  const soonIn = async (query: string) =>
    (await ask(`/operations${query}`)).body.operations.find(
      ({ operationId }: { operationId: string }) => operationId === 'soon',
    );
  const { requests, lastMs } = await soonIn('');
  expect(requests).toBe(7);
  const hourAt = (hours: number) =>
    new Date((Math.floor(lastMs / hourMs) + hours) * hourMs).toISOString().replace('.000', '');
  // Some requests may have come before the hour of the last request.
  expect((await soonIn(`?from=${hourAt(-1)}&to=${hourAt(0)}`)).requests).toBeLessThan(requests);
  const { stdout } = await run('operations', '--from', hourAt(-1), '--to', hourAt(0));
  const text = (hours: number) => hourAt(hours).slice(0, 16).replace('T', ' ');
  expect(stdout).toContain(`Operations, whole hours, from ${text(-1)} to ${text(0)} UTC`);
});

it('reads the record of each key once for all operations', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const recorded = await start({ redis: { url: redis.url, prefix: 'test' } });
  onTestFinished(async () => {
    await recorded.stop('SIGKILL');
  });
  for (const { secret } of [acme, globex, quiet]) await send(secret, 1, 'soon', recorded);
  const callers = async () =>
    (await ask('/deprecated?from=2026-01-01', recorded)).body.operations.flatMap(
      (one: { callers: object[] }) => one.callers,
    );
  await until('the requests are recorded', async () => (await callers()).length === 3);
  const inspector = inspect(redis.url);
  onTestFinished(() => inspector.disconnect());
  await inspector.config('RESETSTAT');
  await callers();
  const commands = await inspector.info('commandstats');
  const reads = [...commands.matchAll(/^cmdstat_hmget:calls=(\d+)/gm)].map(([, calls]) => Number(calls));
  expect(reads).toEqual([expect.any(Number)]);
  // Three keys were active on one day. One pass for each operation would read 60 records.
  expect(reads[0]).toBeLessThan(2 * deprecatedMax);
});

it('the command prints one table, and CSV with a row for each operation and key', async () => {
  const { stdout } = await run('operations', '--deprecated', '--from', 'today');
  expect(stdout).toMatch(
    /^Deprecated operations, whole hours, from .* 00:00 to .* UTC\nOPERATION +UNTIL +THEN +KEY/,
  );
  expect(stdout).toMatch(/\nsoon +2090-01-01, in [\d,]+ days +gone +acme +3 /);
  expect(stdout).toMatch(/\nlate +2090-02-01, in [\d,]+ days +gone +no known caller +0 ?/);
  expect(stdout).toMatch(/\nendless0 +no date +gone +no known caller +0 ?/);
  expect(stdout).toMatch(/3 more deprecated operations are not in this list\.\n$/);

  const ran = await run('operations', '--deprecated', '--csv');
  expect(ran.stderr).toBe('3 more deprecated operations are not in this list.\n');
  const [titles, ...rows] = ran.stdout.trimEnd().split('\n');
  expect(titles).toMatch(
    /^operation,sunset,days,after_sunset,successor,notes,key,name,plan,requests,last_call/,
  );
  expect(rows[2]).toMatch(/^soon,2090-01-01T00:00:00\.000Z,\d+,gone,,,acme,Acme,pro,3,\d{4}-/);
  expect(rows[3]).toMatch(/^late,2090-02-01T00:00:00\.000Z,\d+,gone,,,,,,0,/);
});
