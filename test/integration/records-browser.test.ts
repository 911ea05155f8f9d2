import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, ElementHandle, Page } from 'puppeteer-core';
import { beforeAll, expect, it } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { axeFindings, openWithToken, startBrowser, watchedPage } from '../support/browser.ts';
import { makeKey } from '../support/gateway-process.ts';
import { startWithPastDays } from '../support/past-days.ts';

/** What an operator reads from records: the usage of a month, the changes of a key, and a request in the access log. */

const { token, entry } = makeToken('write', 'ada');
const keys = ['acme', 'globex'].map((id) => makeKey({ id, plan: 'free' }));
const now = new Date();
const lastMonth = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)).toISOString().slice(0, 7);
let browser: Browser;
let origin: string;
let folder: string;

beforeAll(async () => {
  browser = await startBrowser();
  folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  // The first day of the last month.
  const daysAgo =
    Math.floor(now.getTime() / 86_400_000) - Math.floor(Date.parse(`${lastMonth}-01`) / 86_400_000);
  const days = { acme: [{ daysAgo: daysAgo - 3, admitted: 70 }] };
  const { gateway, stop } = await startWithPastDays({ keys, token: entry, days, nowMs: now.getTime() });
  origin = gateway.adminUrl.replace(/\/$/, '');
  const ban = (id: string) =>
    askAdmin(Number(new URL(origin).port), `/api/v1/keys/${id}/ban`, {
      token,
      method: 'POST',
      json: { untilAt: new Date(Date.now() + 3_600_000).toISOString() },
    });
  for (const id of ['acme', 'globex']) expect((await ban(id)).status).toBe(200);
  return async () => {
    await browser.close();
    await rm(folder, { recursive: true });
    await stop();
  };
});

async function open(path: string, width = 1280) {
  const { page, complaints } = await watchedPage(browser, origin, width);
  await openWithToken(page, `${origin}${path}`, token);
  await page.waitForSelector('h1');
  const session = await page.createCDPSession();
  await session.send('Browser.setDownloadBehavior', {
    behavior: 'allow',
    downloadPath: folder,
    browserContextId: page.browserContext().id ?? '',
  });
  return { page, complaints };
}

async function download(page: Page, name: string): Promise<readonly string[]> {
  await rm(join(folder, name), { force: true });
  await page.locator('button ::-p-text(Download CSV)').click();
  const read = () => readFile(join(folder, name), 'utf8').catch(() => '');
  await expect.poll(read).toMatch(/\n$/);
  return (await read()).trimEnd().split('\n');
}

const rowsOf = (page: Page) =>
  page.$$eval('table tbody tr', (rows) =>
    rows.map((row) => [...row.querySelectorAll('td')].map(({ textContent }) => textContent)),
  );

it('the usage of a past month is a page, and a file for bills', async () => {
  const { page, complaints } = await open('/usage');
  await page.select('[aria-label=Month]', lastMonth);
  await expect
    .poll(() => rowsOf(page))
    .toEqual([
      ['acme', 'free', '70', '70', '0'],
      ['globex', 'free', '0', '0', '0'],
    ]);
  expect(new URL(page.url()).searchParams.get('month')).toBe(lastMonth);
  expect(await download(page, `usage-${lastMonth}.csv`)).toEqual([
    'id,name,plan,offered,admitted,refused,units',
    'acme,,free,70,70,0,70',
    'globex,,free,0,0,0,0',
  ]);
  const [year = 0, month = 0] = lastMonth.split('-').map(Number);
  const earlier = new Date(Date.UTC(year, month - 3)).toISOString().slice(0, 7);
  await page.select('[aria-label=Month]', earlier);
  await expect
    .poll(() => page.$eval('.sentence p', ({ textContent }) => textContent))
    .toBe(`The record has no request of ${earlier}.`);
  const narrow = await open(`/usage?month=${lastMonth}`, 390);
  await expect.poll(() => rowsOf(narrow.page)).toHaveLength(2);
  expect(await narrow.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  expect(await axeFindings(narrow.page)).toEqual([]);
  expect([...complaints, ...narrow.complaints].filter((text) => !text.includes('blob:'))).toEqual([]);
});

it('the changes of one key are a page and a file, and the page of the key leads to them', async () => {
  const { page, complaints } = await open('/keys/acme');
  await page.locator('a ::-p-text(its changes)').click();
  const texts = () => page.$$eval('ul.rows .what', (all) => all.map(({ textContent }) => textContent ?? ''));
  await expect.poll(texts).toEqual([expect.stringContaining('ada banned acme')]);
  const lines = await download(page, 'changes.csv');
  expect(lines).toEqual([
    expect.stringMatching(/^at,action,by,files,key,/),
    expect.stringMatching(/^[^,]+Z,ban,ada,,acme,/),
  ]);
  await page.locator('input[aria-label="Id of a key"]').fill('globex');
  await expect.poll(texts).toEqual([expect.stringContaining('ada banned globex')]);
  await page.select('[aria-label=Author]', 'file');
  await expect
    .poll(() => page.$eval('.empty', ({ textContent }) => textContent))
    .toBe('No change matches this filter.');
  expect(await axeFindings(page)).toEqual([]);
  expect(complaints.filter((text) => !text.includes('blob:'))).toEqual([]);
});

it('a letter that is typed while the filter goes into the URL stays', async () => {
  const { page } = await open('/changes');
  const field = 'input[aria-label="Id of a key"]';
  await page.waitForSelector(field);
  await page.$eval(field, (input) => {
    const type = (text: string) => {
      input.value = text;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    };
    const replaceState = history.replaceState.bind(history);
    history.replaceState = (...args) => {
      replaceState(...args);
      history.replaceState = replaceState;
      type('globex');
    };
    type('glob');
  });
  await page.waitForFunction(() => location.search.includes('key=glob'));
  // Two frames later, the page has read the new URL.
  const shown = await page.$eval(field, async (input) => {
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    return input.value;
  });
  expect(shown).toBe('globex');
  await page.waitForFunction(() => location.search.includes('key=globex'));
});

it('the id of a request leads from the search field to its story, from a file or from pasted lines', async () => {
  const id = '6f1f2f3a-0f4e-4c57-9d2a-5e2f1c9b7a10';
  const line = {
    ...{ time: '2026-11-22T10:31:07.250Z', requestId: id, method: 'GET', path: '/v1/pets' },
    ...{ operation: 'listPets', keyId: 'acme', plan: 'free', address: '192.0.2.1', status: 429 },
    ...{
      error: 'rate_limited',
      decision: 'refused',
      window: 'minute',
      limit: 60,
      remaining: 0,
      totalMs: 1.2,
    },
  };
  const other = { ...line, requestId: '00000000-0f4e-4c57-9d2a-5e2f1c9b7a10' };
  const log = [other, line].map((entry) => `gateway-1  | ${JSON.stringify(entry)}\n`).join('');
  const file = join(folder, 'access.log.gz');
  await writeFile(file, gzipSync(`no JSON\n${log}`));
  const story =
    'GET /v1/pets (listPets) of acme (free) from 192.0.2.1, on 2026-11-22 at 10:31:07.250 UTC, was answered 429 (rate_limited) by the gateway after 1.2 ms. The key had used all 60 requests of that minute.';
  const said = (page: Page, selector: string) =>
    page.$eval(selector, ({ textContent }) => textContent).catch(() => undefined);

  const { page, complaints } = await open('/keys');
  await page.type('#search', ` ${id} `);
  await page.keyboard.press('Enter');
  const chooser = (await page.waitForSelector('input[type=file]')) as ElementHandle<HTMLInputElement>;
  expect(new URL(page.url()).pathname).toBe(`/requests/${id}`);
  await chooser.uploadFile(file);
  await expect.poll(() => said(page, '.why p')).toBe(story);
  expect(await axeFindings(page)).toEqual([]);
  await page.locator('textarea').fill(JSON.stringify(other));
  await expect
    .poll(() => said(page, '.request > div > [role=status]'))
    .toMatch(/^No request .*: 1 line was read, /);
  expect(await said(page, '.why p')).toBeUndefined();
  await page.locator('textarea').fill(log);
  await expect.poll(() => said(page, '.why p')).toBe(story);

  const invalid = await open('/requests/x', 390);
  expect(await said(invalid.page, '[role=alert]')).toContain('The id of a request is the X-Request-Id');
  expect([...complaints, ...invalid.complaints]).toEqual([]);
});
