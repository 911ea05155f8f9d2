import { expect, it, onTestFinished } from 'vitest';
import { makeToken } from '../support/admin-client.ts';
import { startFleetHere } from '../support/fleet.ts';
import { makeKey } from '../support/gateway-process.ts';
import { runTollgate } from '../support/run-tollgate.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { withinOneMinute } from '../support/within-one-minute.ts';

const token = makeToken('read');

/** Starts two gateways with a key that has the group `lists`, and with a key without groups. */
async function start() {
  const [grouped, plain] = [
    makeKey({ id: 'grouped', plan: 'grouped' }),
    makeKey({ id: 'plain', plan: 'plain' }),
  ];
  const lists = { operations: ['listPets'], perMinute: 4, perDay: 6 };
  const plans = { grouped: { perDay: 1_000, groups: { lists } }, plain: { perDay: 1_000 } };
  const fleet = await startFleetHere({
    starts: [{ tuning: { bounds: patientGateway } }, { tuning: { bounds: patientGateway } }],
    config: {
      plans,
      keys: [grouped.entry, plain.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      bans: { after: 1_000 },
    },
  });
  onTestFinished(() => fleet.stop());
  const authorization = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });
  const get = async ({ secret }: typeof grouped, path: string, index: number) => {
    const origin = fleet.origins[index % fleet.origins.length];
    return fetch(`${origin}${path}`, authorization(secret));
  };
  const run = async (...args: string[]) => {
    const env = { TOLLGATE_ADMIN: fleet.gateways[0]?.adminUrl ?? '', TOLLGATE_ADMIN_TOKEN: token.token };
    const { exitCode, stdout, stderr } = await runTollgate(args, env);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    return stdout;
  };
  return { fleet, plans, grouped, plain, get, run };
}

/** The sums of the columns of comma-separated values, by title. */
function sumsOf(csv: string): Record<string, number> {
  const [titles = '', ...rows] = csv.trimEnd().split('\n');
  return Object.fromEntries(
    titles
      .split(',')
      .map((title, at) => [title, rows.reduce((sum, row) => sum + Number(row.split(',')[at]), 0)] as const)
      .filter(([title]) => title !== 'at'),
  );
}

const windows = ['second', 'minute', 'hour', 'day', 'month'];
const columns = [
  ...['at', 'offered', 'admitted', ...windows.map((window) => `refused_${window}`)],
  ...['banned', 'undecided', 'unauthorized', 'units', 'refused_concurrent'],
];

it('usage shows requests, units and refusals by group, and every offered request is in one column', async () => {
  const { grouped, plain, get, run } = await start();
  await withinOneMinute(10_000);
  for (let request = 0; request < 7; request++) await (await get(grouped, '/v1/pets', request)).text();
  for (let request = 0; request < 3; request++) await (await get(grouped, '/v1/pets/1', request)).text();
  await (await get(plain, '/v1/pets', 0)).text();

  const csv = await run('usage', 'grouped', '--csv');
  const ofGroup = ['offered', 'admitted', 'units', 'refused'].map((figure) => `${figure}_lists`);
  expect(csv.split('\n')[0]).toBe([...columns, ...ofGroup].join(','));
  const sums = sumsOf(csv);
  expect(sums).toMatchObject({ offered: 10, admitted: 7, units: 7, banned: 0 });
  expect(sums).toMatchObject({ offered_lists: 7, admitted_lists: 4, units_lists: 4, refused_lists: 3 });
  expect((await run('usage', 'plain', '--csv')).split('\n')[0]).toBe(columns.join(','));
  expect(await run('usage', 'plain')).not.toContain('lists');

  const table = await run('usage', 'grouped');
  expect(table).toMatch(/UNITS OF lists/);
  expect(table.trimEnd().split('\n').at(-1)).toMatch(/^total +10 +7 +4 +3 +0 +lists-minute 3$/);
  const row = {
    ...{ offered: 10, admitted: 7, banned: 0, refused: { 'lists-minute': 3 } },
    groups: { lists: { offered: 7, admitted: 4, units: 4 } },
  };
  for (const step of ['minute', 'hour', 'day']) {
    expect(JSON.parse(await run('usage', 'grouped', '--step', step, '--json')).rows).toMatchObject([row]);
  }
  expect(JSON.parse(await run('usage', 'plain', '--json')).rows[0]).not.toHaveProperty('groups');
});

it('refusals by a group that the key no longer has stay in a column of their own', async () => {
  const { fleet, plans, grouped, get, run } = await start();
  await withinOneMinute(10_000);
  for (let request = 0; request < 7; request++) await (await get(grouped, '/v1/pets', request)).text();
  await fleet.editConfig({ plans: { ...plans, grouped: { perDay: 1_000 } } });
  let csv = '';
  await until('the gateway has reloaded', async () => {
    csv = await run('usage', 'grouped', '--csv');
    return !csv.includes('lists');
  });
  expect(csv.split('\n')[0]).toBe([...columns, 'refused_group'].join(','));
  expect(sumsOf(csv)).toMatchObject({ offered: 7, admitted: 4, refused_group: 3 });
  expect((await run('usage', 'grouped')).trimEnd().split('\n').at(-1)).toMatch(/group 3$/);
});
