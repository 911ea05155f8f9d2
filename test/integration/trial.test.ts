import { afterAll, beforeAll, expect, it } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, startFleetHere } from '../support/fleet.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey, type RunningGateway } from '../support/gateway-process.ts';
import { readMetrics } from '../support/read-metrics.ts';
import { runTollgate } from '../support/run-tollgate.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** Three gateways on one Redis. The plan `free` has a trial, and the plan `same` has the same limits without a trial. */
const limits = { perDay: 10 };
const plans = { free: { ...limits, trial: { perDay: 6 } }, same: limits };
const { token, entry } = makeToken('read');
const keys = {
  harmed: makeKey({ id: 'harmed', name: 'Harmed Ltd', plan: 'free' }),
  calm: makeKey({ id: 'calm', plan: 'free' }),
  greedy: makeKey({ id: 'greedy', plan: 'free' }),
  untried: makeKey({ id: 'untried', plan: 'same' }),
};

let fleet: Fleet<RunningGateway>;
beforeAll(async () => {
  const tuning = {
    windowsMs: freshWindows(Date.now()),
    bounds: { ...patientGateway, planDistributionKeptMs: 0, metricsKeptMs: 0, usageFlushIntervalMs: 200 },
  };
  fleet = await startFleetHere({
    starts: [{ tuning }, { tuning }, { tuning }],
    config: {
      plans,
      keys: Object.values(keys).map((key) => key.entry),
      bans: { after: 1_000 },
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    },
  });
});
afterAll(() => fleet.stop());

/** Sends requests of a key to the gateways in turn, and returns the status and the rate-limit fields of each response. */
async function send(secret: string, times: number) {
  const responses = [];
  for (let request = 0; request < times; request++) {
    const { baseUrl } = fleet.gateways[request % fleet.gateways.length] as RunningGateway;
    const response = await fetch(`${baseUrl}/pets`, { headers: { authorization: `Bearer ${secret}` } });
    await response.arrayBuffer();
    const fields = [...response.headers].filter(([name]) => /ratelimit/i.test(name));
    responses.push([response.status, fields.map(([name, value]) => [name, value.replaceAll(/t=\d+/g, '')])]);
  }
  return responses;
}

const ask = async (path: string, gateway = fleet.gateways[0] as RunningGateway) =>
  (await askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1${path}`, { token })).body;

const refusedByTrial = async () => {
  const metrics = await Promise.all(fleet.gateways.map(({ adminUrl }) => readMetrics(adminUrl)));
  return metrics
    .map(({ figures }) => figures.get('tollgate_trial_refused_total{plan="free",window="day"}') ?? 0)
    .reduce((sum, refused) => sum + refused, 0);
};

it('metrics, record, pages and commands of a fleet agree on what the trial would have refused, and no response differs', async () => {
  const harmed = await send(keys.harmed.secret, 9);
  await send(keys.calm.secret, 5);
  const greedy = await send(keys.greedy.secret, 14);
  // The plan without the trial answers the same.
  expect(greedy).toEqual(await send(keys.untried.secret, 14));
  expect(harmed).toEqual(greedy.slice(0, 9));
  expect(greedy.map(([status]) => status)).toEqual([...Array(10).fill(200), ...Array(4).fill(429)]);

  expect(await refusedByTrial()).toBe(3 + 8);
  // The other processes send their counts after some seconds.
  await until('all counts are in the record', async () => (await ask('/plans/free/trial')).requests === 28);
  const found = await ask('/plans/free/trial');
  expect(found).toMatchObject({
    ...{ requests: 28, refused: 11, refusedBy: { day: 11 }, refusedNow: 4 },
    ...{ triedKeys: 3, refusedKeys: 2, newlyRefusedKeys: 1 },
    keys: [
      { id: 'greedy', requests: 14, refused: 8, refusedNow: 4 },
      { id: 'harmed', name: 'Harmed Ltd', requests: 9, refused: 3, refusedNow: 0 },
    ],
  });
  expect((await ask('/keys/harmed')).trial).toMatchObject({ requests: 9, refused: 3, refusedNow: 0 });
  expect((await ask('/keys/untried')).trial).toBeUndefined();

  const env = { TOLLGATE_ADMIN: fleet.gateways[1]?.adminUrl ?? '', TOLLGATE_ADMIN_TOKEN: token };
  const { stdout } = await runTollgate(['trial', 'free'], env);
  expect(stdout.replaceAll('\n', ' ')).toContain(
    'Trial 6 a day: 11 of 28 requests (39 %) would have been refused, 11 by the day limit. 2 of 3 keys would have had refusals, 1 of them for the first time. The plan itself refused 4.',
  );
  expect(stdout).toMatch(/^harmed +9 +0 +3 +33 % +.* +day 3 +Harmed Ltd$/m);
  const lines = fleet.gateways.flatMap((gateway) => gateway.lines);
  expect(lines.filter(({ trial }) => trial === 'day')).toHaveLength(11);
  expect((await runTollgate(['keys', 'show', 'harmed'], env)).stdout).toMatch(
    /^trial, 24 h +Trial 6 a day: 3 of 9 /m,
  );
});

it('an edited trial begins at zero, and a plan whose trial was removed has no figures', async () => {
  const before = await refusedByTrial();
  await fleet.editConfig({ plans: { ...plans, free: { ...limits, trial: { perDay: 5 } } } });
  await until('every gateway has the new trial', async () => {
    const all = await Promise.all(fleet.gateways.map((gateway) => ask('/plans/free/trial', gateway)));
    return all.every(({ limits }) => limits.perDay === 5);
  });
  expect(await ask('/plans/free/trial')).toMatchObject({ requests: 0, refused: 0, keys: [] });
  // The key has used 5 units, so the edited trial refuses its next request.
  await send(keys.calm.secret, 1);
  await until('the request is in the record', async () => (await ask('/plans/free/trial')).requests === 1);
  expect(await ask('/plans/free/trial')).toMatchObject({ refused: 1, keys: [{ id: 'calm', refusedNow: 0 }] });
  expect(await refusedByTrial()).toBe(before + 1);

  await fleet.editConfig({ plans: { ...plans, free: limits } });
  await until('no gateway has a trial', async () => {
    const all = await Promise.all(fleet.gateways.map((gateway) => ask('/plans/free/trial', gateway)));
    return all.every(({ code }) => code === 'not_found');
  });
  await send(keys.calm.secret, 1);
  expect(await refusedByTrial()).toBe(before + 1);
  expect((await ask('/keys/calm')).trial).toBeUndefined();
});
