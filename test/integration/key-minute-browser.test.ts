import { pino } from 'pino';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Gateway } from '../../gateway/server/gateway.ts';
import { makeToken } from '../support/admin-client.ts';
import { axeFindings, openWithToken, startBrowser, watchedPage } from '../support/browser.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { settingsOf } from '../support/settings-of.ts';
import { type StoreProcess, startStoreHere } from '../support/store-process.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientGateway } from '../support/tuning.ts';
import { withinOneMinute } from '../support/within-one-minute.ts';

/** The minute of a chart that an operator picks on the page of a key. */

const { token, entry } = makeToken('read', 'ada');
const key = makeKey({ id: 'acme', plan: 'free' });
const stale = makeKey({ id: 'stale', plan: 'free', disabled: true });
let browser: Browser;
let store: StoreProcess;
let gateway: Gateway;
let configuration: Record<string, unknown>;
let origin: string;
/** The minute in which five requests were refused. */
let refusedAt: string;

beforeAll(async () => {
  [browser, store] = await Promise.all([startBrowser(), startStoreHere()]);
  configuration = {
    upstream: { url: store.url, health: '/healthz' },
    plans: { free: { perMinute: 5 } },
    keys: [key.entry, stale.entry],
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
  };
  const settings = await settingsOf(configuration);
  const log = { logger: pino({ level: 'silent' }), access: () => {} };
  gateway = createGateway({ settings, log, bounds: tunedBounds(patientGateway) });
  const { listen, admin } = await gateway.start();
  origin = `http://127.0.0.1:${admin.port}`;
  await withinOneMinute(10_000);
  refusedAt = `${new Date().toISOString().slice(0, 16)}Z`;
  const call = async (secret: string, times: number) => {
    const headers = { authorization: `Bearer ${secret}` };
    for (let sent = 0; sent < times; sent++)
      await (await fetch(`http://127.0.0.1:${listen.port}/v1/pets`, { headers })).arrayBuffer();
  };
  await call(key.secret, 10);
  await call(stale.secret, 3);
});
afterAll(async () => {
  await gateway.drain({ graceMs: 0 });
  await browser.close();
  await store.stop();
});

async function open(path: string, width = 1280) {
  const { page, complaints } = await watchedPage(browser, origin, width);
  await openWithToken(page, `${origin}${path}`, token);
  await page.waitForSelector('.plot[role=slider] canvas');
  return { page, complaints };
}

const textsOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim() ?? ''));
const sentence = async (page: Page) => (await textsOf(page, '.minute p'))[0];
const inAddress = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);
const cursor = (page: Page) => page.$eval('.plot', (plot) => Number(plot.getAttribute('aria-valuenow')));
const refused = 'acme sent 10 requests';

it('a click on a minute explains it; minutes that are too narrow are zoomed first', async () => {
  const { page, complaints } = await open('/keys/acme?period=24h');
  const over = await page.waitForSelector('.u-over');
  await over?.scrollIntoView();
  const clickAt = async (share: number) => {
    const box = await over?.boundingBox();
    if (!box) throw new Error('the chart has no place');
    await page.mouse.click(box.x + box.width * share, box.y + 40);
  };
  await clickAt(0.5);
  await expect.poll(() => sentence(page)).toMatch(/^No request that reached the limits of acme is recorded/);
  const { at = '', from = '', to = '', period } = inAddress(page);
  expect([Date.parse(at) - Date.parse(from), Date.parse(to) - Date.parse(at), period]).toEqual([
    1_800_000,
    1_800_000,
    undefined,
  ]);
  // The minutes of an hour are wide enough. The picked minute begins in the middle of the chart.
  await clickAt(31.5 / 60);
  await expect.poll(() => inAddress(page).at).toBe(isoMinute(Date.parse(at) + 60_000));
  expect(inAddress(page)).toMatchObject({ from, to });
  await page.locator('.minute header button:nth-of-type(1)').click();
  await expect.poll(() => inAddress(page).at).toBe(at);
  await page.locator('.minute header button:last-of-type').click();
  await expect.poll(() => page.$('.minute')).toBeNull();
  expect(inAddress(page)).toEqual({ from, to });
  expect(complaints).toEqual([]);
});

it('the time of a minute can be typed', async () => {
  const { page, complaints } = await open('/keys/acme?period=24h');
  const typed = refusedAt.slice(11, 16);
  await page.$eval(
    'input[type=time]',
    (field, value) => {
      (field as HTMLInputElement).value = value;
      field.dispatchEvent(new Event('change', { bubbles: true }));
    },
    typed,
  );
  await expect.poll(() => inAddress(page).at).toBe(refusedAt);
  await expect.poll(() => sentence(page)).toContain(refused);
  expect(await page.$eval('input[type=time]', (field) => (field as HTMLInputElement).value)).toBe(typed);
  expect(complaints).toEqual([]);
});

it('the keyboard chooses a minute with arrows, and explains it with Enter', async () => {
  const { page, complaints } = await open('/keys/acme?period=1h');
  // The cursor begins at the last minute with a request.
  const text = () => page.$eval('.plot', (plot) => plot.getAttribute('aria-valuetext'));
  await expect.poll(text).toMatch(/: admitted 5, refused 5, banned 0$/);
  const last = await cursor(page);
  await page.focus('.plot');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => cursor(page)).toBe(last - 1);
  await page.keyboard.press('PageDown');
  await expect.poll(() => cursor(page)).toBe(last - 11);
  await page.keyboard.press('Home');
  await expect.poll(() => cursor(page)).toBe(0);
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('End');
  await expect.poll(() => cursor(page)).toBeGreaterThanOrEqual(last);
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await expect.poll(() => sentence(page)).toMatch(/^No request that reached the limits of acme is recorded/);
  expect(complaints).toEqual([]);
});

it('the table of minutes with refusals links to the explanation, and a link of it restores it on any page width', async () => {
  const { page, complaints } = await open('/keys/acme');
  await page.waitForSelector('tbody a time');
  await page.locator('tbody a:has(time)').click();
  await expect.poll(() => sentence(page)).toContain(refused);
  expect(inAddress(page).at).toBe(refusedAt);
  expect(await textsOf(page, '.minute li')).toEqual([
    '5 requests were refused with 429 by the limit of 5 a minute.',
  ]);
  const link = page.url().slice(origin.length);
  const narrow = await open(link, 390);
  await expect.poll(() => sentence(narrow.page)).toContain(refused);
  expect(await narrow.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  for (const theme of ['light', 'dark']) {
    await narrow.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    expect([theme, await axeFindings(narrow.page)]).toEqual([theme, []]);
  }
  expect([complaints, narrow.complaints]).toEqual([[], []]);
});

it('the chart has the requests with an invalid secret, as the table of minutes has', async () => {
  const { page, complaints } = await open('/keys/stale?period=1h');
  await expect
    .poll(() => page.$eval('.plot', (plot) => plot.getAttribute('aria-valuetext')))
    .toMatch(/: admitted 0, refused 0, banned 0, invalid secret 3$/);
  await expect.poll(() => textsOf(page, 'td')).toContain('invalid secret 3');
  expect(complaints).toEqual([]);
});

it('a minute that is no longer recorded says so', async () => {
  const { page, complaints } = await open('/keys/acme?at=2020-01-01T14:03Z');
  await expect
    .poll(() => sentence(page))
    .toBe(
      'The minute 14:03:00 UTC on 2020-01-01 is no longer recorded. Minutes are kept for 1 day, and older usage by day.',
    );
  // The browser reports the status of the response.
  expect(complaints).toEqual([expect.stringContaining('400')]);
});

it('the page of a removed key says when an edit removed it', async () => {
  gateway.reload(await settingsOf({ ...configuration, keys: [key.entry] }));
  const { page } = await watchedPage(browser, origin, 1280);
  await openWithToken(page, `${origin}/keys/stale`, token);
  await expect
    .poll(() => textsOf(page, '.empty'), { timeout: 60_000 })
    .toEqual([
      expect.stringMatching(
        /^There is no key stale\. stale was removed at \d\d:\d\d:\d\d UTC( on \S+)? by an edit of the files\. Show all keys\.$/,
      ),
    ]);
});

function isoMinute(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 16)}Z`;
}
