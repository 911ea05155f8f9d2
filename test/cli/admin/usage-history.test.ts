import { beforeAll, describe, expect, it } from 'vitest';
import { dayMs } from '../../../gateway/shared/words/figures.js';
import { makeToken } from '../../support/admin-client.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { startWithPastDays } from '../../support/past-days.ts';
import { runTollgate } from '../../support/run-tollgate.ts';

/** The history of a key in the terminal: months, comparisons and the forecast. */

const { token, entry } = makeToken('read');
const monthly = { plan: 'enterprise', limits: { perMinute: 100, perMonth: 1_000_000 } };
const keys = [
  makeKey({ id: 'acme', ...monthly }),
  makeKey({ id: 'new', ...monthly }),
  makeKey({ id: 'even', ...monthly }),
  makeKey({ id: 'free' }),
];
const nowMs = Date.now();
const ago = (days: number) => new Date(nowMs - days * dayMs).toISOString().slice(0, 10);

/** 100 requests a day for 40 days, and 200 a day for the last seven. There was none 3 and 12 days ago. */
const admittedOf = (daysAgo: number) => (daysAgo === 3 || daysAgo === 12 ? 0 : daysAgo <= 7 ? 200 : 100);

let env: Record<string, string>;
beforeAll(async () => {
  const fortyDays = Array.from({ length: 40 }, (_, index) => index + 1);
  const { gateway, stop } = await startWithPastDays({
    keys,
    token: entry,
    days: {
      acme: fortyDays
        .filter((daysAgo) => admittedOf(daysAgo) > 0)
        .map((daysAgo) => ({ daysAgo, admitted: admittedOf(daysAgo) })),
      even: fortyDays.map((daysAgo) => ({ daysAgo, admitted: 100 })),
      new: [{ daysAgo: 3, admitted: 5 }],
      free: [{ daysAgo: 3, admitted: 5 }],
    },
    nowMs,
  });
  env = { TOLLGATE_ADMIN: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: token, NO_COLOR: '1' };
  return stop;
});

async function usage(...args: string[]) {
  const { exitCode, stdout, stderr } = await runTollgate(['usage', ...args], env);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}
const cellsOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/ {2,}/));

const week = ['acme', '--from', ago(7), '--to', ago(1), '--step', 'day', '--compare', '-7d'];

describe('usage --compare', () => {
  it('shows the same period of the week before, the change, and words where there was nothing before', async () => {
    const text = await usage(...week);
    expect(text).toContain(
      `The change of the total compares ${ago(7)} to ${ago(1)} with ${ago(14)} to ${ago(8)}.\n`,
    );
    const rows = cellsOf(text);
    expect(rows[0]?.slice(0, 5)).toEqual(['DAY (UTC)', 'OFFERED', 'BEFORE', 'CHANGE', 'ADMITTED']);
    const figures = Object.fromEntries(
      rows.slice(1, 9).map(([at = '', ...cells]) => [at, cells.slice(0, 3)]),
    );
    expect(figures).toEqual({
      [ago(7)]: ['200', '100', '+100 %'],
      [ago(6)]: ['200', '100', '+100 %'],
      [ago(5)]: ['200', '0', 'none before'],
      [ago(4)]: ['200', '100', '+100 %'],
      [ago(3)]: ['0', '100', '-100 %'],
      [ago(2)]: ['200', '100', '+100 %'],
      [ago(1)]: ['200', '100', '+100 %'],
      total: ['1,200', '600', '+100 %'],
    });
  });

  it('gives no change for a row that is not over, and leaves it out of the change of the total', async () => {
    const text = await usage('acme', '--from', ago(2), '--step', 'day', '--compare', '-7d');
    expect(text.replace(/\s+/g, ' ')).toContain(
      `compares ${ago(2)} to ${ago(1)} with ${ago(9)} to ${ago(8)}, without the row that is not over.`,
    );
    const rows = cellsOf(text);
    const total = rows.find(([at]) => at === 'total');
    expect(total?.slice(0, 4)).toEqual(['total', '400', '400', '+100 %']);
    expect(rows.find(([at]) => at === ago(0))?.slice(0, 4)).toEqual([ago(0), '0', '200', 'not over']);
  });

  it('shows days without --step if the minutes of the earlier period are no longer kept', async () => {
    const rows = cellsOf(await usage('acme', '--from', '-7d', '--compare', '-7d'));
    expect(rows[0]?.[0]).toBe('DAY (UTC)');
    const hours = await usage('acme', '--from', '-7d', '--compare', '-7d', '--step', 'hour');
    expect(hours).toContain('earlier rows may be missing. With --step day, they are complete.\n');
  });

  it('has no change while no row is over', async () => {
    const text = await usage('acme', '--from', 'today', '--step', 'day', '--compare', '-7d');
    expect(
      cellsOf(text)
        .find(([at]) => at === 'total')
        ?.slice(1, 4),
    ).toEqual(['0', '200', 'not over']);
    expect(text).toContain('No row is over, so the total has no change.\n');
  });

  it('says that nothing is recorded in a period before the record', async () => {
    expect(await usage('acme', '--from', ago(7), '--step', 'day', '--compare', '-90d')).toContain(
      'No request is recorded in the earlier period.\n',
    );
  });

  it('adds columns to the comma-separated values, and the earlier response to the JSON', async () => {
    const lines = (await usage(...week, '--csv')).trim().split('\n');
    expect(lines[0]).toMatch(/,refused_concurrent,offered_before,admitted_before,units_before$/);
    expect(
      lines.slice(1).map((line) => line.replace(/^([^,]*),(\d+),.*,(\d+,\d+,\d+)$/, '$1 $2 $3')),
    ).toContain(`${ago(5)}T00:00:00Z 200 0,0,0`);
    const { rows, before } = JSON.parse(await usage(...week, '--json'));
    expect([rows.length, before.rows.length]).toEqual([6, 6]);
    expect(before).toMatchObject({
      step: 'day',
      rows: [{ at: `${ago(14)}T00:00:00Z`, offered: 100 }, {}, {}, {}, {}, {}],
    });
  });
});

describe('usage by month', () => {
  it('shows the last 12 months without --from, and the sums of their days', async () => {
    const rows = cellsOf(await usage('acme', '--step', 'month')).filter(([at]) =>
      /^\d{4}-\d\d$|total/.test(at ?? ''),
    );
    expect(rows.length).toBeGreaterThan(2);
    expect(rows.at(-1)?.[1]).toBe((6 * 200 + 32 * 100).toLocaleString('en'));
    expect(rows.at(0)?.[0]).toBe(ago(40).slice(0, 7));
  });

  it('compares months with months', async () => {
    const text = await usage('acme', '--step', 'month', '--from', '-1mo', '--compare', '-1mo');
    expect(cellsOf(text)[0]?.slice(0, 4)).toEqual(['MONTH (UTC)', 'OFFERED', 'BEFORE', 'CHANGE']);
  });
});

describe('the forecast', () => {
  it('follows a table, and is a member of the JSON', async () => {
    const sentence =
      'At the pace of the last 14 days, even does not reach its present limit of 1,000,000 units a month';
    for (const options of [[], ['--from', '-30d'], ['--step', 'month']]) {
      expect(await usage('even', ...options)).toMatch(new RegExp(`\n${sentence}\\. Its count was .*\n$`));
    }
    const { forecast } = JSON.parse(await usage('even', '--from', '-30d', '--json'));
    expect(forecast).toMatchObject({ limit: 1_000_000, expected: { units: expect.any(Number) } });
    expect(await usage('new', '--from', '-30d')).toMatch(
      /\nNo forecast: it needs 14 complete days on record, and new has 2\.\n$/,
    );
  });

  it.each([
    ['a past period', ['acme', '--from', ago(9), '--to', ago(2)]],
    ['comma-separated values', ['acme', '--from', '-30d', '--csv']],
    ['a key without a limit a month', ['free', '--from', '-30d']],
  ])('is absent from %s', async (_, args) => {
    expect(await usage(...args)).not.toMatch(/forecast|pace/);
  });
});
