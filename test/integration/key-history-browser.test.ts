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

it('12 months are bars of months with the limit of a month, and cannot be compared', async () => {
  const { page, complaints } = await open('/keys/acme?period=12mo');
  const month = new Intl.DateTimeFormat('en-GB', { month: 'short', year: 'numeric', timeZone: 'UTC' });
  // The record begins 58 days ago.
  await page.focus('.plot');
  await page.keyboard.press('Home');
  const first = new Date(nowMs);
  first.setUTCDate(1);
  first.setUTCMonth(first.getUTCMonth() - 11);
  await expect.poll(() => sliderText(page)).toBe(`${month.format(first)}: admitted –, refused –, banned –`);
  await page.keyboard.press('End');
  await expect.poll(() => sliderText(page)).toMatch(new RegExp(`^${month.format(nowMs)}: admitted`));
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
  expect(complaints).toEqual([]);
});

it('the forecast is below the chart of a key with a limit a month, and of no other key', async () => {
  const { page, complaints } = await open('/keys/acme');
  const sentence = () => page.$eval('.forecast', ({ textContent }) => textContent);
  await page.waitForSelector('.forecast');
  expect(await sentence()).toMatch(
    /^At the pace of the last 14 days, acme does not reach its present limit of 1,000,000 units a month; expected /,
  );
  const other = await open('/keys/free');
  await other.page.waitForNetworkIdle();
  expect(await other.page.$('.forecast')).toBeNull();
  expect([complaints, other.complaints]).toEqual([[], []]);
});
