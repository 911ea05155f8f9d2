import type { Browser, Page } from 'puppeteer-core';
import { beforeAll, expect, it } from 'vitest';
import { dayMs } from '../../gateway/shared/words/figures.js';
import { makeToken } from '../support/admin-client.ts';
import { axeFindings, openWithToken, startBrowser, watchedPage } from '../support/browser.ts';
import { makeKey } from '../support/gateway-process.ts';
import { startWithPastDays } from '../support/past-days.ts';

/** The days and months of a key, its forecast, and the comparison with an earlier period, on the page of the key. */

const { token, entry } = makeToken('read', 'ada');
const limits = { perMinute: 5, perDay: 150, perMonth: 1_000_000 };
const keys = [
  makeKey({ id: 'acme', plan: 'enterprise', limits }),
  makeKey({ id: 'free', plan: 'enterprise', limits: { perMinute: 5 } }),
];
const nowMs = Date.now();
let browser: Browser;
let origin: string;

beforeAll(async () => {
  browser = await startBrowser();
  // The earlier four weeks have 60 requests a day, and the last four weeks have 100.
  const days = Array.from({ length: 58 }, (_, index) => ({
    daysAgo: index + 1,
    admitted: index < 28 ? 100 : 60,
  }));
  const { gateway, stop } = await startWithPastDays({ keys, token: entry, days: { acme: days }, nowMs });
  origin = gateway.adminUrl.replace(/\/$/, '');
  return async () => {
    await browser.close();
    await stop();
  };
});

async function open(path: string, width = 1280) {
  const { page, complaints } = await watchedPage(browser, origin, width);
  await openWithToken(page, `${origin}${path}`, token);
  await page.waitForSelector('.plot[role=slider] canvas');
  return { page, complaints };
}

const sliderText = (page: Page) => page.$eval('.plot', (plot) => plot.getAttribute('aria-valuetext'));
const legend = (page: Page) =>
  page.$$eval('figcaption .legend', (all) => all.map(({ textContent }) => textContent?.trim()));
const pressed = (page: Page) =>
  page.$$eval('[role=group] [aria-pressed=true]', (all) => all.map(({ textContent }) => textContent));
const press = (page: Page, text: string) => page.locator(`[role=group] ::-p-text(${text})`).click();
const totals = (page: Page) => page.$eval('.totals', ({ textContent }) => textContent);
const query = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);
const weekday = (daysAgo: number) =>
  new Intl.DateTimeFormat('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  }).format(nowMs - daysAgo * dayMs);

it('30 days are bars of days with the limit of a day, which the keyboard and a screen reader can read', async () => {
  const { page, complaints } = await open('/keys/acme');
  await press(page, '30 days');
  await expect.poll(() => query(page)).toEqual({ period: '30d' });
  await expect.poll(() => sliderText(page)).toBe(`${weekday(1)}: admitted 100, refused 0, banned 0`);
  expect(await legend(page)).toContain('limit 150 a day');
  await page.focus('.plot');
  await page.keyboard.press('Home');
  await expect.poll(() => sliderText(page)).toBe(`${weekday(29)}: admitted 60, refused 0, banned 0`);
  // A day has no minute to explain.
  await page.keyboard.press('Enter');
  expect([query(page), await page.$('.minute')]).toEqual([{ period: '30d' }, null]);
  expect(complaints).toEqual([]);
});

it('7 days are bars of days, and their sum is compared with the week before', async () => {
  const { page, complaints } = await open('/keys/acme?period=7d&compare=1');
  await expect
    .poll(() => totals(page))
    .toBe('600 requests in this period. Without the last bar: 600, and 600 the week before (0 %).');
  // The longer period begins before the rows that were read.
  await press(page, '30 days');
  await expect
    .poll(() => totals(page))
    .toBe(
      '2,860 requests in this period. Without the last bar: 2,860, and 1,740 the four weeks before (+64 %).',
    );
  expect(complaints).toEqual([]);
});

it('12 months are bars of months with the limit of a month, and cannot be compared', async () => {
  const { page, complaints } = await open('/keys/acme?period=12mo');
  const month = new Intl.DateTimeFormat('en-GB', { month: 'short', year: 'numeric', timeZone: 'UTC' });
  const ofThisMonth = new RegExp(`^${month.format(nowMs)}: admitted`);
  await expect.poll(() => sliderText(page)).toMatch(ofThisMonth);
  // The record begins 58 days ago.
  await page.focus('.plot');
  await page.keyboard.press('Home');
  const first = new Date(nowMs);
  first.setUTCDate(1);
  first.setUTCMonth(first.getUTCMonth() - 11);
  await expect.poll(() => sliderText(page)).toBe(`${month.format(first)}: admitted –, refused –, banned –`);
  await page.keyboard.press('End');
  await expect.poll(() => sliderText(page)).toMatch(ofThisMonth);
  expect(await legend(page)).toContain('limit 1,000,000 a month');
  expect(await pressed(page)).toEqual(['12 months']);
  expect(await page.$('::-p-text(before)')).toBeNull();
  expect(complaints).toEqual([]);
});

it('the earlier period is a dashed line with a legend, and a link restores it at any width', async () => {
  const { page, complaints } = await open('/keys/acme?period=30d');
  await press(page, 'four weeks before');
  await expect.poll(() => query(page)).toEqual({ period: '30d', compare: '1' });
  await expect.poll(() => sliderText(page)).toMatch(/, banned 0, four weeks before 60$/);
  expect(await legend(page)).toContain('four weeks before60');
  expect(await totals(page)).toBe(
    '2,860 requests in this period. Without the last bar: 2,860, and 1,740 the four weeks before (+64 %).',
  );
  const narrow = await open('/keys/acme?period=30d&compare=1', 390);
  await expect.poll(() => pressed(narrow.page)).toEqual(['30 days', 'four weeks before']);
  await expect.poll(() => sliderText(narrow.page)).toMatch(/, four weeks before 60$/);
  expect(await narrow.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  for (const theme of ['light', 'dark']) {
    await narrow.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    expect([theme, await axeFindings(narrow.page)]).toEqual([theme, []]);
  }
  await press(page, 'four weeks before');
  await expect.poll(() => query(page)).toEqual({ period: '30d' });
  await expect.poll(() => legend(page)).not.toContainEqual(expect.stringContaining('before'));
  expect([complaints, narrow.complaints]).toEqual([[], []]);
});

it('the chart of all requests has the week before, and keeps it in the address', async () => {
  const { page, complaints } = await watchedPage(browser, origin, 1280);
  await openWithToken(page, `${origin}/?period=24h`, token);
  await page.waitForSelector('.chart canvas');
  await press(page, 'week before');
  await expect.poll(() => query(page)).toEqual({ period: '24h', compare: '1' });
  await expect.poll(() => legend(page)).toContain('week before–');
  await press(page, '7 days');
  await expect.poll(() => query(page)).toEqual({ period: '7d', compare: '1' });
  await expect.poll(() => legend(page)).toContain('week before–');
  expect(await totals(page)).toMatch(
    /^[\d,]+ requests in this period\. The record has no request of the week before\.$/,
  );
  expect(complaints).toEqual([]);
});

it('a chart marks the end of an outage at its end, and texts of outages come before those of edits', async () => {
  const { page } = await watchedPage(browser, origin, 1280);
  await openWithToken(page, origin, token);
  await page.waitForSelector('.chart canvas');
  const at = (minute: number) => new Date(nowMs - (60 - minute) * 60_000).toISOString();
  const edits = [20, 22, 24, 26, 28, 30, 32, 34, 36, 38].map((minute) => ({
    kind: 'reload',
    group: 'change',
    at: at(minute),
  }));
  const outage = {
    ...{ kind: 'upstream_well', group: 'incident', upstream: 'orders' },
    ...{ at: at(33), beganAt: at(20), endedAt: at(31) },
  };
  const drawn = await page.evaluate(`(async () => {
    const { name } = performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/charts.js'));
    const [{ h, render }, { Chart, markersOf }] = await Promise.all([import('preact'), import(name)]);
    const drawn = [];
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
      drawn.push(text);
      return fillText.call(this, text, ...place);
    };
    const markers = ${JSON.stringify([...edits, outage])}.flatMap(markersOf);
    const holder = document.body.appendChild(document.createElement('div'));
    holder.style.width = '500px';
    const [fromMs, toMs] = [${nowMs - 3_600_000}, ${nowMs}];
    const series = [{ label: 'a', colour: 'blue', values: [1, 1] }];
    render(h(Chart, { label: '', timesMs: [fromMs, toMs - 60000], fromMs, toMs, series, kind: 'stacked', write: String, markers }), holder);
    await new Promise((resolve) => setTimeout(resolve, 200));
    return { drawn, ends: markers.filter(({ text }) => text === 'end of failures of orders').map(({ atMs }) => atMs) };
  })()`);
  expect(drawn).toEqual({
    drawn: expect.arrayContaining(['failures of orders', 'end of failures of orders', 'new configuration']),
    ends: [nowMs - 29 * 60_000],
  });
});

it('the forecast is below the chart of a key with a limit a month, and of no other key', async () => {
  const { page, complaints } = await open('/keys/acme');
  const sentence = () => page.$eval('.forecast', ({ textContent }) => textContent);
  await page.waitForSelector('.forecast');
  expect(await sentence()).toMatch(
    /^At the pace of the last 14 days, acme does not reach its present limit of 1,000,000 units a month\. Its count was [\d,]+ at \d\d:\d\d:\d\d UTC, and is expected to be /,
  );
  const other = await open('/keys/free');
  await other.page.waitForNetworkIdle();
  expect(await other.page.$('.forecast')).toBeNull();
  expect([complaints, other.complaints]).toEqual([[], []]);
});
