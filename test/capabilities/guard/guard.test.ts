import { expect, it, onTestFinished } from 'vitest';
import { limitsInView } from '../../../gateway/admin/settings/settings-view.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { type Fleet, type FleetOptions, originOf, readiness, startFleetHere } from '../../support/fleet.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../support/gateway-process.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { startCluster } from '../../support/start-cluster.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const alice = makeToken('write', 'alice');
const names = ['a', 'b', 'c', 'd', 'e', 'f'];
const keys = names.map((id) => makeKey({ id, plan: 'free' }));
const other = makeKey({ id: 'other', plan: 'pro' });
const before = { perDay: 1_000_000 };
const guard = { before, refusedAtMost: '3 %', until: '2100-01-01' };
const free = { perDay: 20, guard };
const config = {
  plans: { free, pro: before },
  keys: [...keys, other].map(({ entry }) => entry),
  admin: { host: '127.0.0.1', port: 0, tokens: [alice.entry] },
  bans: { after: 1_000_000 },
};
const bounds = { ...patientStore, guardIntervalMs: 50 };

/** Sends requests with the keys `a` to `f` in turn, to all gateways in turn. @returns the number of responses by status */
async function send(
  { origins }: Pick<Fleet<RunningGateway>, 'origins'>,
  requests: number,
  of: readonly { readonly secret: string }[] = keys,
  path = '/v1/pets',
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  for (let from = 0; from < requests; from += 20) {
    await Promise.all(
      Array.from({ length: Math.min(20, requests - from) }, async (_, index) => {
        const number = from + index;
        const { secret } = of[number % of.length] ?? other;
        const response = await fetch(`${origins[number % origins.length]}${path}`, {
          headers: { authorization: `Bearer ${secret}` },
        });
        await response.arrayBuffer();
        statuses[response.status] = (statuses[response.status] ?? 0) + 1;
      }),
    );
  }
  return statuses;
}

async function startGuarded(processes: number, options: Partial<FleetOptions> = {}) {
  const fleet = await startFleetHere({
    starts: Array.from({ length: processes }, () => ({ tuning: { bounds } })),
    ...options,
    config: { ...config, ...options.config },
  });
  onTestFinished(() => fleet.stop());
  await allReady(fleet);
  return fleet;
}

function allReady({ gateways }: Fleet<RunningGateway>): Promise<unknown> {
  return Promise.all(
    gateways.map((gateway) =>
      until('Redis decides', async () => JSON.parse((await readiness(gateway)).text).store.available),
    ),
  );
}

const isReverted = async (gateway: RunningGateway) =>
  (await readiness(gateway)).body.reasons.some((reason) => reason.includes('plan free is guarded'));

function allReverted({ gateways }: Fleet<RunningGateway>, wanted = true): Promise<unknown> {
  return Promise.all(
    gateways.map((gateway) => until('the guard', async () => (await isReverted(gateway)) === wanted)),
  );
}

const ask = ({ adminUrl }: RunningGateway, path: string, method = 'GET') =>
  askAdmin(Number(new URL(adminUrl).port), `/api/v1${path}`, { token: alice.token, method });

const planOf = async (gateway: RunningGateway) => (await ask(gateway, '/plans')).body.plans[0];

/** Sends 160 requests. The limit of 20 a day refuses 40 requests, or fewer if the plan is reverted before the last requests. */
async function exceed(fleet: Pick<Fleet<RunningGateway>, 'origins'>) {
  const { 200: served = 0, 429: refused = 0 } = await send(fleet, 160);
  expect([served + refused, refused >= 5]).toEqual([160, true]);
}

for (const form of ['one Redis', 'a Cluster'] as const) {
  it(`three processes on ${form} revert a plan together, and retry it together`, async () => {
    const cluster = form === 'a Cluster' ? await startCluster({ hasReplicas: false }) : undefined;
    if (cluster !== undefined) onTestFinished(() => cluster.stop());
    const fleet = await startGuarded(3, {
      ...(cluster && { place: { cluster: cluster.urls } }),
    });
    const [one, two] = fleet.gateways;
    if (one === undefined || two === undefined) throw new Error('three were started');
    await exceed(fleet);
    await allReverted(fleet);
    // The requests before the revert still count, and the earlier limit admits further requests on every process.
    expect(await send(fleet, 60)).toEqual({ 200: 60 });

    const plan = await planOf(two);
    const { requests, refused } = plan.reverted;
    expect(plan).toMatchObject({
      windows: [{ name: 'day', limit: 1_000_000 }],
      reverted: { edit: { perDay: 20 } },
    });
    expect([requests >= 100 && requests <= 160, refused / requests >= 0.03 && refused <= 40]).toEqual([
      true,
      true,
    ]);
    const { sinceAt } = plan.reverted;
    const limits = { edit: { perDay: 20 }, inForce: before };
    expect(await readiness(one)).toMatchObject({
      httpStatus: 200,
      body: { status: 'degraded', revertedPlans: [{ plan: 'free', since: sinceAt, ...limits }] },
    });
    const change = {
      action: 'plan.reverted',
      by: 'guard',
      plan: 'free',
      before: { perDay: 20 },
      after: before,
    };
    await expect
      .poll(async () => (await ask(one, '/changes')).body.changes)
      .toMatchObject([{ ...change, figures: { sinceAt, requests, refused } }]);
    await expect
      .poll(async () => (await ask(one, '/events?kind=plan_reverted')).body.events)
      .toMatchObject([{ plan: 'free', text: expect.stringContaining('20 → 1,000,000 a day') }]);

    const retried = await ask(two, '/plans/free/retry', 'POST');
    expect([retried.status, retried.body]).toEqual([
      200,
      { plan: 'free', limits: { perDay: 20 }, revertedAt: sinceAt },
    ]);
    await allReverted(fleet, false);
    expect((await ask(one, '/plans/free/retry', 'POST')).status).toBe(409);
    expect((await ask(one, '/plans/nobody/retry', 'POST')).status).toBe(404);
    expect((await ask(one, '/plans/pro/retry', 'POST')).status).toBe(409);
    expect((await ask(one, '/changes')).body.changes[0]).toMatchObject({
      action: 'plan.retried',
      by: 'alice',
    });
    // All keys have used more than 20 requests, so the edit refuses every request, and the guard reverts the plan again.
    await send(fleet, 120);
    await allReverted(fleet);
    expect((await ask(one, '/changes')).body.changes.length).toBe(3);
  });
}

it.each([
  ['made smaller', { ...before, groups: { pets: { operations: ['listPets'], perDay: 1_000_000 } } }],
  ['new', before],
  ['wider', { ...before, groups: { pets: { operations: ['getPet'], perDay: 20 } } }],
])('a limit of a group that the edit made %s reverts a plan with its groups', async (_, earlier) => {
  const groups = { pets: { operations: ['listPets', 'getPet'], perDay: 20 } };
  const edited = { ...before, groups, guard: { ...guard, before: earlier } };
  const fleet = await startGuarded(2, { config: { plans: { free: edited, pro: before } } });
  const [one] = fleet.gateways;
  if (one === undefined) throw new Error('two were started');
  expect(await planOf(one)).toMatchObject({ watched: { requests: 0, refused: 0 } });
  await exceed(fleet);
  await allReverted(fleet);
  expect(await send(fleet, 60)).toEqual({ 200: 60 });
  const { reverted, windows } = await planOf(one);
  expect(reverted.edit).toEqual({ ...before, groups });
  expect(limitsInView(windows)).toEqual(limitsOf(earlier));
  await expect
    .poll(async () => (await ask(one, '/events?kind=plan_reverted')).body.events)
    .toMatchObject([{ plan: 'free', text: expect.stringContaining('the group pets') }]);
});

it('a flood by one key, and requests that fail at the upstream, revert nothing', async () => {
  const fleet = await startGuarded(2, { config: { upstream: { url: 'http://127.0.0.1:1' } } });
  expect(await send(fleet, 30)).toEqual({ 503: 30 });
  await send(fleet, 2_000, keys.slice(0, 1));
  const [one] = fleet.gateways;
  if (one === undefined) throw new Error('two were started');
  await expect.poll(async () => (await planOf(one)).watched.requests).toBe(2_030);
  expect((await planOf(one)).watched.refused).toBe(2_000 - 15);
  expect(await isReverted(one)).toBe(false);
});

it('requests that no limit of the plan decides, and a flood by one key, do not keep a guard from reverting', async () => {
  const flood = makeKey({ id: 'flood', plan: 'free' });
  const costs = { '/pets': 1, '/free': 0, '/dear': 10_000 };
  const document = {
    openapi: '3.1.0',
    info: { title: 'Test', version: '1.0.0' },
    paths: Object.fromEntries(
      Object.entries(costs).map(([path, cost]) => [path, { get: { operationId: path, 'x-cost': cost } }]),
    ),
  };
  const smaller = { perDay: 20, concurrent: 4, guard: { ...guard, before: { perDay: 5_000 } } };
  const fleet = await startGuarded(2, {
    config: {
      plans: { free: smaller, pro: before },
      keys: [...keys, flood].map(({ entry }) => entry),
      api: 'api.json',
    },
    files: { 'api.json': document },
  });
  const [one] = fleet.gateways;
  if (one === undefined) throw new Error('two were started');
  // The limit of requests in progress refuses some of twenty simultaneous requests.
  expect(await send(fleet, 1_000, [flood], '/v1/dear')).toEqual({
    403: expect.any(Number),
    429: expect.any(Number),
  });
  expect(await send(fleet, 1_000, [flood], '/v1/free')).toEqual({
    404: expect.any(Number),
    429: expect.any(Number),
  });
  await send(fleet, 1_000, [flood]);
  await exceed(fleet);
  await allReverted(fleet);
  const { requests, refused } = (await planOf(one)).reverted;
  expect([requests <= 200, refused / requests >= 0.03]).toEqual([true, true]);
});

it('one active key of several reverts nothing, and the only key of a plan reverts it', async () => {
  const only = makeKey({ id: 'only', plan: 'solo' });
  const fleet = await startGuarded(2, {
    config: {
      plans: { free, pro: before, solo: free },
      keys: [...keys, only].map(({ entry }) => entry),
    },
  });
  const [one] = fleet.gateways;
  if (one === undefined) throw new Error('two were started');
  await send(fleet, 200, keys.slice(0, 1));
  await send(fleet, 200, [only]);
  const plans = async () => (await ask(one, '/plans')).body.plans;
  await until('the guard of solo', async () => (await plans())[2].reverted !== undefined);
  await expect.poll(async () => (await planOf(one)).watched.requests).toBe(200);
  expect(await isReverted(one)).toBe(false);
  // From now on two keys are active, and the plan has refusals of both.
  await send(fleet, 40, keys.slice(1, 2));
  await allReverted(fleet);
});

it('a revert survives an edit of other settings and the loss of all data in Redis, and ends with an edit of the plan', async () => {
  const fleet = await startGuarded(2);
  await exceed(fleet);
  await allReverted(fleet);
  const [one] = fleet.gateways;
  if (one === undefined) throw new Error('two were started');
  const { sinceAt } = (await planOf(one)).reverted;

  await fleet.editConfig({ plans: { free, pro: { perDay: 5 } } });
  await until(
    'the edit is in force',
    async () => (await ask(one, '/plans')).body.plans[1].windows[0].limit === 5,
  );
  await fleet.inspector.flushall();
  const restored = async () => {
    const names = await fleet.inspector.keys('test:guard:*');
    return (
      names.length === 1 && (await fleet.inspector.hget(names[0] ?? '', 'state'))?.startsWith('0 1') === true
    );
  };
  await until('a process restores the revert', restored);
  await allReverted(fleet);
  expect((await planOf(one)).reverted.sinceAt).toBe(sinceAt);

  await fleet.editConfig({ plans: { free: { ...free, perDay: 30 }, pro: before } });
  await allReverted(fleet, false);
  expect((await planOf(one)).windows).toEqual([{ name: 'day', limit: 30 }]);
});

it('processes with another limit or another guard of the plan do not take part', async () => {
  const config = { plans: { free: { ...free, guard: { ...guard, until: '2101-01-01' } }, pro: before } };
  const fleet = await startGuarded(2, { starts: [{ tuning: { bounds } }, { tuning: { bounds }, config }] });
  const [one, two] = fleet.gateways;
  if (one === undefined || two === undefined) throw new Error('two were started');
  await send({ origins: fleet.origins.slice(0, 1) }, 160);
  await until('the guard', () => isReverted(one));
  expect((await planOf(two)).watched).toEqual({ requests: 0, refused: 0 });
  await send({ origins: fleet.origins.slice(1) }, 120);
  await until('the guard', () => isReverted(two));
});

it('an edit that adds Redis and a guard is in force, and the guard begins at the next start', async () => {
  const unguarded = testConfig({
    ...config,
    upstream: { url: 'http://127.0.0.1:1' },
    plans: { free: { perDay: 20 }, pro: before },
  });
  const guarded = { ...unguarded, plans: config.plans, redis: { url: redisUrl(), prefix: freshPrefix() } };
  const tuning = { bounds: { ...bounds, guardRequestsMin: 2 } };
  const start = async (settings: typeof guarded | typeof unguarded) => {
    const gateway = await startGatewayHere(settings, { tuning });
    onTestFinished(async () => void (await gateway.stop('SIGKILL')));
    return gateway;
  };
  const gateway = await start(unguarded);
  await gateway.editConfig(guarded);
  await until('the edit is in force', async () =>
    (await readiness(gateway)).text.includes('waitsForRestart'),
  );
  const one = { origins: [originOf(gateway)] };
  expect((await send(one, 150))[429]).toBe(30);
  expect(await isReverted(gateway)).toBe(false);
  expect((await ask(gateway, '/plans/free/retry', 'POST')).status).toBe(409);

  const restarted = await start(guarded);
  await send({ origins: [originOf(restarted)] }, 150);
  await until('the guard', () => isReverted(restarted));
});
