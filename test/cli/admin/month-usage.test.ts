import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { listCsv } from '../../../gateway/admin/words/csv.js';
import { monthList, monthNotice } from '../../../gateway/admin/words/usage.js';
import { shiftOf } from '../../../gateway/cli/admin/period.ts';
import { compareMonths, monthTable } from '../../../gateway/cli/admin/usage/month-usage.ts';
import { usageCsv, usageLines } from '../../../gateway/cli/admin/usage/usage-view.ts';
import { sayAt } from '../../../gateway/cli/output/list.ts';
import { screenOf } from '../../../gateway/cli/output/screen.ts';
import { makeToken } from '../../support/admin-client.ts';
import { directoryOf } from '../../support/directory-of.ts';
import { startFleetHere } from '../../support/fleet.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { runTollgate } from '../../support/run-tollgate.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const token = makeToken('read');
const bounds = { ...patientStore, usageFlushIntervalMs: 200, usageSlicesPerFlush: 2, usageActiveNotedMs: 0 };
/** Names of customers, and their form in a spreadsheet file. */
const names = [
  ['plain', 'plain'],
  ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['Smith, "Jo" & Sons', '"Smith, ""Jo"" & Sons"'],
] as const;

for (const keys of [60, 300])
  it(`usage --all --month --csv has exactly the requests of ${keys} keys over two gateways`, {
    tags: keys === 60 ? [] : ['full'],
  }, async () => {
    const customers = Array.from({ length: keys }, (_, index) => {
      const [name = '', shown = ''] = names[index % names.length] ?? [];
      const { secret, entry } = makeKey({ id: `customer-${index}`, plan: 'free' });
      return { secret, shown, requests: index % 6, id: entry.id, plan: 'free', entry: { ...entry, name } };
    });
    const issued = Array.from({ length: 20 }, (_, index) => {
      const id = `issued-${index}`;
      return { secret: `secret-of-${id}`, shown: '', requests: index % 4, id, plan: 'issued' };
    });
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'keys.yaml');
    const writeKeys = (some: typeof customers) => writeFile(file, stringify(some.map(({ entry }) => entry)));
    await writeKeys(customers);
    const fleet = await startFleetHere({
      starts: [1, 2].map(() => ({ tuning: { bounds } })),
      config: {
        plans: { free: { perMonth: 3 }, issued: { perMonth: 100 } },
        keys: { file, directory: true },
        admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      },
    });
    onTestFinished(() => fleet.stop());
    const directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
    onTestFinished(() => directory.close());
    for (const { id, secret, plan } of issued) await directory.issue(id, [secret], { plan });
    const usage = async (gateway: 0 | 1, ...args: string[]) => {
      const env = {
        TOLLGATE_ADMIN: fleet.gateways[gateway]?.adminUrl ?? '',
        TOLLGATE_ADMIN_TOKEN: token.token,
      };
      return await runTollgate(['usage', ...args], env);
    };

    const month = new Date().toISOString().slice(0, 7);
    const lines = new Map<string, string>();
    await Promise.all(
      [...customers, ...issued].map(async ({ id, secret, shown, plan, requests }) => {
        let admitted = 0;
        for (let request = 0; request < requests; request++) {
          const headers = { authorization: `Bearer ${secret}` };
          const response = await fetch(`${fleet.gateways[request % 2]?.baseUrl}/pets`, { headers });
          await response.arrayBuffer();
          if (response.status === 200) admitted += 1;
        }
        lines.set(id, `${id},${shown},${plan},${requests},${admitted},${requests - admitted},${admitted}`);
      }),
    );
    const [used, unused] = [`customer-${keys - 1}`, `customer-${keys - 6}`];
    // The test removes a used key and an unused key from the keys file, and also from the key directory. The usage
    // record of a removed key remains if the key was used.
    await writeKeys(customers.filter(({ id }) => id !== used && id !== unused));
    await directory.discard('issued-19');
    await directory.discard('issued-16');
    for (const id of [unused, 'issued-16']) lines.delete(id);
    lines.set(used, `${used},,,5,3,2,3`);
    lines.set('issued-19', 'issued-19,,,3,3,0,3');

    const expected = [
      'id,name,plan,offered,admitted,refused,units',
      ...[...lines].sort().map(([, line]) => line),
    ];
    for (const gateway of [0, 1] as const) {
      await until('all is on record, and the keys file is read', async () => {
        const { stdout } = await usage(gateway, '--all', '--month', month, '--csv');
        return stdout === `${expected.join('\n')}\n`;
      });
    }
    expect((await usage(0, '--all', '--csv')).stdout).toBe(`${expected.join('\n')}\n`);
    const { stdout, stderr } = await usage(0, '--all', '--month', month);
    expect(stdout).toMatch(/^KEY +PLAN +OFFERED +ADMITTED +REFUSED +NAME\n/);
    expect(stderr).toMatch(/^\d{4}-\d\d is not over: these are its requests until .* UTC\.\n$/);
    const one = await usage(1, 'customer-5', '--month', month, '--csv');
    expect(one.stdout).toMatch(new RegExp(`\n${month}-\\d\\dT00:00:00Z,5,3,0,0,0,0,2,0,0,0,3,0\n$`));
    expect(await usage(1, '--all', '--month', '2020-01')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('This month is not on record'),
    });
  });

it.each([
  [['--all', '--step', 'day'], /^--all shows a whole month, such as --month 2026-11/],
  [['acme', '--month', '2026-11', '--to', 'today'], /not both/],
  [['acme', '--compare', '7d'], /^--compare must be a length of time such as -7d/],
  [['--all', '--month', '2026-11', '--compare', '-7d'], /^--compare -7d does not fit rows of a month/],
  [['--all', '--month', '2026-11', '--from', '-7d'], /does not accept --from/],
  [['--month', '2026-11'], /^Whose usage\?/],
  [['--step', 'month'], /are not on record by month\. Give --step minute, hour or day/],
  [['acme', '--all', '--month', '2026-11'], /^Whose usage\?/],
])('usage %j prints a sentence', async (args, expected) => {
  const { exitCode, stderr } = await runTollgate(['usage', ...args], {});
  expect([exitCode, stderr]).toEqual([1, expect.stringMatching(expected)]);
});

it('a complete past month has no notice, and a month with a gap at its beginning has one', () => {
  const keys = [
    { id: 'a', offered: 2, admitted: 1 },
    { id: 'b', name: 'B', plan: 'free', offered: 9, admitted: 9 },
    { id: 'c', plan: 'free', offered: 0, admitted: 0 },
  ];
  const whole = {
    month: '2026-10',
    fromAt: '2026-10-01T00:00:00.000Z',
    toAt: '2026-11-01T00:00:00.000Z',
    keys,
  };
  expect(monthNotice(whole)).toBeUndefined();
  expect(monthNotice({ ...whole, fromAt: '2026-10-24T00:00:00.000Z' })).toBe(
    'The record of 2026-10 begins 2026-10-24 00:00:00 UTC.',
  );
  const rows = monthTable(whole, screenOf(process.stdout, { NO_COLOR: '1', COLUMNS: '200' }), 0);
  expect(rows.slice(1).map((row) => row.trimEnd().split(/ {2,}/))).toEqual([
    ['b', 'free', '9', '9', '0', 'B'],
    ['a', '(removed)', '2', '1', '1'],
  ]);
});

it('a month without a request says what the record has, and not what the keys sent', () => {
  const month = { month: '2026-10', fromAt: '', toAt: '', keys: [{ id: 'a', offered: 0, admitted: 0 }] };
  expect(monthTable(month, screenOf(process.stdout, { COLUMNS: '200' }), 0)).toEqual([
    'The record has no request of 2026-10.',
  ]);
});

it('usage has units where a request did not cost 1 unit, and a bill has them for every key', () => {
  const keys = [
    { id: 'a', plan: 'free', offered: 2, admitted: 1, units: 5 },
    { id: 'b', plan: 'free', offered: 9, admitted: 9 },
  ];
  const month = { month: '2026-10', fromAt: '', toAt: '', keys };
  const screen = screenOf(process.stdout, { NO_COLOR: '1', COLUMNS: '200' });
  const cellsOf = (rows: readonly string[]) => rows.map((row) => row.trim().split(/ {2,}/));
  expect(listCsv(monthList, month, sayAt(0)).slice(1)).toEqual(['a,,free,2,1,1,5', 'b,,free,9,9,0,9']);
  expect(cellsOf(monthTable(month, screen, 0))).toEqual([
    ['KEY', 'PLAN', 'OFFERED', 'ADMITTED', 'UNITS', 'REFUSED', 'NAME'],
    ['b', 'free', '9', '9', '9', '0'],
    ['a', 'free', '2', '1', '5', '1'],
  ]);
  const row = { at: '2026-10-01T00:00:00Z', refused: {}, banned: 0 };
  const rows = [
    { ...row, offered: 2, admitted: 2 },
    { ...row, offered: 2, admitted: 2, units: 0 },
  ];
  expect(
    cellsOf(
      usageLines('a', { step: 'day', rows }, { screen, shift: undefined, nowMs: 0, mayLackRows: false }),
    ).at(-1),
  ).toEqual(['total', '4', '4', '2', '0', '0']);
});

it('a month is compared with an earlier month, also for a key that is only in one of them', () => {
  const at = { fromAt: '2026-10-01T00:00:00.000Z', toAt: '2026-11-01T00:00:00.000Z' };
  const present = {
    ...{ month: '2026-10', ...at },
    keys: [
      { id: 'a', plan: 'free', offered: 6, admitted: 6 },
      { id: 'new', plan: 'free', offered: 2, admitted: 2 },
    ],
  };
  const before = {
    ...{ month: '2026-09', ...at },
    keys: [
      { id: 'a', plan: 'free', offered: 4, admitted: 4 },
      { id: 'gone', offered: 3, admitted: 3 },
    ],
  };
  const rows = monthTable(
    compareMonths(present, before),
    screenOf(process.stdout, { NO_COLOR: '1', COLUMNS: '200' }),
    0,
  );
  expect(rows.map((row) => row.trim().split(/ {2,}/))).toEqual([
    ['KEY', 'PLAN', 'OFFERED', 'BEFORE', 'CHANGE', 'ADMITTED', 'REFUSED', 'NAME'],
    ['a', 'free', '6', '4', '+50 %', '6', '0'],
    ['new', 'free', '2', '0', 'none before', '2', '0'],
    ['gone', '(removed)', '0', '3', '-100 %', '0', '0'],
  ]);
});

it('while Redis is away nothing is compared, and the cells of the earlier period are empty', () => {
  const at = { fromAt: '2026-10-01T00:00:00.000Z', toAt: '2026-11-01T00:00:00.000Z' };
  const missing = { what: ['requests'] };
  const screen = screenOf(process.stdout, { NO_COLOR: '1', COLUMNS: '200' });
  const month = { ...at, month: '2026-10', keys: [{ id: 'a', plan: 'free', offered: 6, admitted: 6 }] };
  const compared = compareMonths(month, { ...month, month: '2026-09', missing });
  expect(monthTable(compared, screen, 0).join()).not.toMatch(/BEFORE|none/);

  const row = { offered: 2, admitted: 2, refused: {}, banned: 0 };
  const usage = {
    step: 'day',
    rows: [{ ...row, at: '2026-10-08T00:00:00Z' }],
    before: { step: 'day', rows: [{ ...row, at: '2026-10-01T00:00:00Z' }], missing },
  } as const;
  const shift = shiftOf('-7d');
  const lines = usageLines('a', usage, { screen, shift, nowMs: 0, mayLackRows: false });
  expect(lines.map((line) => line.split(/ {2,}/, 1)[0])).toEqual([
    'DAY (UTC)',
    '2026-10-08',
    'total',
    'The earlier period is not known, because Redis is away.',
  ]);
  const [titles = '', ...rows] = usageCsv(usage, shift);
  expect([titles.endsWith(',offered_before,admitted_before,units_before'), rows.length]).toEqual([true, 1]);
  expect(rows[0]).toMatch(/,,,$/);
});
