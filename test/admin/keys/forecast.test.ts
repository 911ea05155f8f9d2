import { beforeAll, describe, expect, it } from 'vitest';
import { recentPace } from '../../../gateway/admin/keys/over-time/forecast-route.ts';
import { calendarStartMs } from '../../../gateway/shared/calendar-windows.ts';
import { dayMs } from '../../../gateway/shared/words/figures.js';
import type { UsageRow } from '../../../gateway/usage/read/usage-rows.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { faultsOf } from '../../support/described-replies.ts';
import { makeKey, type RunningGateway } from '../../support/gateway-process.ts';
import { type PastDay, startWithPastDays } from '../../support/past-days.ts';

const { token, entry } = makeToken('read');
const monthly = { plan: 'enterprise', limits: { perMinute: 100, perMonth: 1_000_000 } };
const small = { plan: 'enterprise', limits: { perMinute: 100, perMonth: 1 } };
function daysLeft(): number {
  const now = Date.now();
  return (calendarStartMs('month', calendarStartMs('month', now) + 40 * dayMs) - now) / dayMs;
}

const limitsOf = {
  steady: monthly,
  tight: { plan: 'enterprise', limits: { perMonth: 2 } },
  young: monthly,
  sparse: monthly,
  refused: monthly,
  full: small,
  risen: { plan: 'enterprise', limits: { perMonth: 6 } },
  surging: monthly,
  // The 2 units of the last ten minutes lead to 288 a day, and the days before to 4.
  rushing: { plan: 'enterprise', limits: { perMonth: Math.ceil(2 + 16 * daysLeft()) } },
  daily: { plan: 'enterprise', limits: { perMinute: 100, perDay: 1_000 } },
};
type Id = keyof typeof limitsOf;
const keys = Object.entries(limitsOf).map(([id, plan]) => makeKey({ id, ...plan }));

const nowMs = Date.now();
const daysOf = (count: number, admittedOf: (daysAgo: number) => number): PastDay[] =>
  Array.from({ length: count }, (_, index) => ({ daysAgo: index + 1, admitted: admittedOf(index + 1) }));
const pastDays: Partial<Record<Id, PastDay[]>> = {
  steady: daysOf(40, () => 1_000),
  // The limit is reached within a second, so that a test at the end of a month reaches it, too.
  tight: daysOf(40, () => 1_000_000),
  young: daysOf(10, () => 1_000),
  sparse: [...daysOf(3, () => 1_000), { daysAgo: 40, admitted: 1 }],
  refused: daysOf(40, () => 1_000).map((day) => (day.daysAgo < 4 ? { ...day, refusedByMonth: 5 } : day)),
  daily: daysOf(40, () => 1_000),
  risen: daysOf(40, () => 1),
  surging: daysOf(40, () => 4),
  rushing: daysOf(40, () => 4),
};

let gateway: RunningGateway;
beforeAll(async () => {
  const started = await startWithPastDays({ keys, token: entry, days: pastDays, nowMs });
  gateway = started.gateway;
  for (const id of [
    'full',
    'surging',
    'surging',
    'rushing',
    'rushing',
    ...Array.from({ length: 5 }, () => 'risen'),
  ]) {
    const secret = keys.find((key) => key.entry.id === id)?.secret;
    await fetch(`${gateway.baseUrl}/pets`, { headers: { authorization: `Bearer ${secret}` } });
  }
  return started.stop;
});

const ask = (path: string) => askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1${path}`, { token });

const none = {
  young: 'No forecast: it needs 14 complete days on record, and young has 9.',
  sparse: 'No forecast: sparse was charged on only 3 of the last 14 days.',
  refused:
    'No forecast: the limit a month refused requests on 3 of the last 14 days, so these days do not show the pace.',
  daily: 'There is no forecast, because daily has no limit a month.',
} as const;

describe('the forecast of a key', () => {
  it('continues the pace of the last 14 days to the end of the month', async () => {
    const reply = await ask('/keys/steady/forecast');
    const { status, body } = reply;
    expect(status).toBe(200);
    const { units, low, high } = body.expected;
    // The gateway asks the clock some seconds earlier.
    expect(Math.abs(units - 1_000 * daysLeft())).toBeLessThan(50);
    expect([low, high]).toEqual([units, units]);
    expect(body).toMatchObject({ limit: 1_000_000, used: 0 });
    expect(body.sentence).toMatch(
      /^At the pace of the last 14 days, steady does not reach its present limit of 1,000,000 units a month\. Its count was [\d,]+ at \d\d:\d\d:\d\d UTC, and is expected to be [\d,]+ at the month's end\.$/,
    );
    expect(faultsOf(reply, 'GET', '/keys/{id}/forecast')).toEqual([]);
  });

  it('names the day on which the limit is reached', async () => {
    const reply = await ask('/keys/tight/forecast');
    const { body } = reply;
    const day = new Date(body.earliestAt);
    expect(body.latestAt).toBe(body.earliestAt);
    expect([0, 1]).toContain(Math.round((day.getTime() - calendarStartMs('day', nowMs)) / dayMs));
    const month = day.toLocaleString('en-GB', { month: 'long', timeZone: 'UTC' });
    expect(body.sentence).toContain(
      `tight reaches its present limit of 2 units a month on ${day.getUTCDate()} ${month}.`,
    );
    expect(faultsOf(reply, 'GET', '/keys/{id}/forecast')).toEqual([]);
  });

  it('says that the last minutes alone have much of a day', async () => {
    const { body } = await ask('/keys/surging/forecast');
    expect(body.sentence).toMatch(
      / at the month's end\. Since \d\d:\d\d UTC it was charged 2 units, and 4 on the busiest of these days\.$/,
    );
  });

  it.each([
    ['the last hour', [6, 30, 60], '11:00', 3],
    ['the last ten minutes, if the pace has more than doubled', [1, 2, 55], '11:50', 2],
    ['the first charge of the hour', [6, 20, 28], '11:32', 3],
    ['the last hour, if the last minutes have none', [30, 59, 60], '11:00', 3],
    ['the last ten minutes, without a record', [], '11:50', 0],
  ])('knows the present pace from %s, from a whole minute on', (_, minutesAgo, from, units) => {
    const noonMs = Date.parse('2026-11-24T12:00:00Z');
    const minutes = minutesAgo.map((ago) => ({
      at: new Date(noonMs - ago * 60_000).toISOString(),
      admitted: 1,
    }));
    const pace = recentPace(minutes as UsageRow[], noonMs + 40_000);
    expect([new Date(pace.fromMs).toISOString().slice(11, 16), pace.units]).toEqual([from, units]);
  });

  it('begins with where the last minutes lead, if this is earlier', async () => {
    const { body } = await ask('/keys/rushing/forecast');
    expect(body.sentence).toMatch(
      /^At its pace since \d\d:\d\d UTC, rushing reaches its present limit of \d+ units a month on \d+ \w+ at about \d\d:\d\d UTC\. At the pace of the last 14 days, rushing does not reach its present limit of .* Since \d\d:\d\d UTC it was charged 2 units, and 4 on the busiest of these days\.$/,
    );
  });

  it('of a used limit says when the next month begins', async () => {
    const { body } = await ask('/keys/full/forecast');
    expect(body).toMatchObject({ limit: 1, used: 1 });
    expect(body.sentence).toMatch(
      /^full has used its present limit of 1 unit a month\. The next month begins on 1 \w+\.$/,
    );
  });

  it('is refused if today exceeds what the days allow, and says where the last minutes lead', async () => {
    const reply = await ask('/keys/risen/forecast');
    const { body } = reply;
    const { limitAt, ...today } = body.today;
    expect([today, body.used, body.expected]).toEqual([{ units: 5, most: 4 }, 5, undefined]);
    expect(body.sentence).toMatch(
      /^No forecast: risen was charged 5 units today, but the last 14 days allow at most 4 for a whole day\. At its pace since \d\d:\d\d UTC, it reaches its present limit of 6 units a month on \d+ \w+ at about \d\d:\d\d UTC\.$/,
    );
    // One unit is left at 5 units in ten to eleven minutes.
    expect(Math.abs(Date.parse(limitAt) - Date.now() - 2.1 * 60_000)).toBeLessThan(30_000);
    expect(faultsOf(reply, 'GET', '/keys/{id}/forecast')).toEqual([]);
  });

  it.each(Object.entries(none))('of %s is refused with the reason', async (id, sentence) => {
    const reply = await ask(`/keys/${id}/forecast`);
    const { status, body } = reply;
    expect([status, body.sentence, body.expected]).toEqual([200, sentence, undefined]);
    expect(faultsOf(reply, 'GET', '/keys/{id}/forecast')).toEqual([]);
  });

  it('of an unknown key is 404', async () => {
    expect(await ask('/keys/nobody/forecast')).toMatchObject({ status: 404 });
  });
});

describe('rows of months', () => {
  it('are the sums of the recorded days, also of days without minutes', async () => {
    const from = new Date(nowMs - 70 * dayMs).toISOString();
    const [months, days] = await Promise.all(
      ['month', 'day'].map(
        async (step) => (await ask(`/keys/steady/usage?step=${step}&from=${from}`)).body.rows,
      ),
    );
    const byMonth = Object.groupBy(days as { at: string; admitted: number }[], ({ at }) => at.slice(0, 7));
    const sums = Object.entries(byMonth).map(([month, rows = []]) => [
      `${month}-01T00:00:00Z`,
      rows.reduce((sum, { admitted }) => sum + admitted, 0),
    ]);
    expect(months.map((row: { at: string; admitted: number }) => [row.at, row.admitted])).toEqual(sums);
    expect(sums.length).toBeGreaterThan(1);
  });

  it('include the whole month of the beginning', async () => {
    const { body } = await ask(
      `/keys/steady/usage?step=month&from=${new Date(nowMs - 12 * dayMs).toISOString()}`,
    );
    const { body: all } = await ask(
      `/keys/steady/usage?step=month&from=${new Date(nowMs - 70 * dayMs).toISOString()}`,
    );
    expect(all.rows).toEqual(expect.arrayContaining(body.rows));
  });
});
