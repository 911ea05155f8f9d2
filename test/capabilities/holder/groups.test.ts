import { expect, it, onTestFinished } from 'vitest';
import { exports, plan, reports, startGroups, startMs } from '../../integration/groups-fixture.ts';
import { startFleetHere } from '../../support/fleet.ts';
import { makeKey } from '../../support/gateway-process.ts';

const settings = { limitsPath: '/limits' };

it('the limits page lists each group with its operations, and the admin API has the same windows', async () => {
  const { send, show } = await startGroups({ settings });
  for (const path of ['/report', '/export', '/pets']) await send(path);
  const at = (ms: number) => new Date(startMs + ms).toISOString();
  const { body, fields } = await send('/limits', '');
  const windows = [
    { name: 'minute', limit: 60, used: 4, remaining: 56, resetAt: at(60_000) },
    { name: 'day', limit: 1_000, used: 4, remaining: 996, resetAt: at(86_400_000) },
    { name: 'reports-minute', limit: 5, used: 3, remaining: 2, resetAt: at(60_000) },
    { name: 'reports-hour', limit: 8, used: 3, remaining: 5, resetAt: at(3_600_000) },
    { name: 'exports-day', limit: 20, used: 2, remaining: 18, resetAt: at(86_400_000) },
  ];
  const operationsOf = (name: string) =>
    ({ reports: reports.operations, exports: exports.operations })[name.split('-')[0] ?? ''];
  expect(body.windows).toEqual(
    windows.map((window) => {
      const operations = operationsOf(window.name);
      return { ...window, ...(window.name.includes('-') && { operations }) };
    }),
  );
  expect(fields.left).toBe('minute;r=56, day;r=996, reports-minute;r=2, reports-hour;r=5, exports-day;r=18');
  const shown = await show('/keys/acme');
  expect(shown.windows).toEqual(
    windows.map(({ resetAt, ...window }) => ({ ...window, resetMs: Date.parse(resetAt) })),
  );
});

it('a key with a group of its own has this group now and after a change of its plan', async () => {
  const own = { operations: ['createReport'], perDay: 7 };
  const key = makeKey({ id: 'acme', plan: 'small', groups: { reports: own } });
  const changes = [{ from: '2026-12-01', perMinute: 30, groups: { reports, exports } }];
  const { send } = await startGroups({ settings, key, plans: { small: { ...plan, changes } } });
  const { body } = await send('/limits', '');
  expect(body.windows.map(({ name, limit }: { name: string; limit: number }) => [name, limit])).toEqual([
    ['minute', 60],
    ['day', 1_000],
    ['exports-day', 20],
    ['reports-day', 7],
  ]);
  expect(body.upcoming).toEqual([
    { from: '2026-12-01T00:00:00.000Z', limits: { perMinute: 30, groups: { exports, reports: own } } },
  ]);
});

it('the usage that the holder reads has the figures of groups, in each step', async () => {
  const key = makeKey({ id: 'grouped', plan: 'grouped' });
  const lists = { operations: ['listPets'], perMinute: 4 };
  const fleet = await startFleetHere({
    starts: [{}],
    config: { ...settings, plans: { grouped: { perDay: 1_000, groups: { lists } } }, keys: [key.entry] },
  });
  onTestFinished(() => fleet.stop());
  const get = (path: string) =>
    fetch(`${fleet.origins[0]}${path}`, { headers: { authorization: `Bearer ${key.secret}` } });
  await (await get('/v1/pets')).text();
  for (const step of ['minute', 'hour', 'day']) {
    const own = await (await get(`/limits/usage?step=${step}`)).json();
    expect(own).toMatchObject({ rows: [{ groups: { lists: expect.anything() } }] });
  }
});
