import type { Browser } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { longGroup, plan, reports, startGroups } from '../../integration/groups-fixture.ts';
import { startStoreGateway, textOf } from '../../integration/store-gateway-fixture.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { axeFindings, startBrowser, watchedPage } from '../../support/browser.ts';
import { plans } from '../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { type StoreProcess, startStoreHere } from '../../support/store-process.ts';

/** The page for key holders in a browser, with the pet store as the backend. */
let browser: Browser;
let store: StoreProcess;

beforeAll(async () => {
  [browser, store] = await Promise.all([startBrowser(), startStoreHere()]);
});
afterAll(async () => {
  await browser.close();
  await store.stop();
});

it('the page for key holders shows limits, usage and refusals of the entered key, and keeps the key in its memory alone', async () => {
  const { origin, secret } = await startStoreGateway(store, undefined, {
    limitsPath: '/limits',
    plans: { ...plans, free: { perMinute: 5, perDay: 50 } },
  });
  const bearer = { authorization: `Bearer ${secret}` };
  for (let i = 0; i < 6; i++) await (await fetch(`${origin}/v1/pets/1`, { headers: bearer })).arrayBuffer();
  const { page, complaints } = await watchedPage(browser, origin, 390);
  // The clock of the browser is 40 days slow, which is more than the longest period that `/limits/usage` accepts.
  await page.evaluateOnNewDocument('const now = Date.now; Date.now = () => now() - 40 * 86_400_000;');
  await page.goto(`${origin}/limits`);
  const enter = async (key: string, shown: string) => {
    await page.type('#key', key);
    await page.keyboard.press('Enter');
    await page.waitForSelector(shown);
  };
  await enter('guessed', '#failure:not([hidden])');
  expect(await textOf(page, '#failure')).toEqual(['The API key is not valid.']);
  await enter(secret, '#shown:not([hidden]) section');
  const sections = (await textOf(page, 'section h3')).join(', ');
  expect(sections).toBe('Limits, Usage, Refused requests, Deprecated operations that this key called');
  const [text = ''] = await textOf(page, '#shown');
  expect(text).toMatch(/this day.*5 of 50 used, 45 left/s);
  // The day limit also bounds an hour, because it is lower than sixty times the minute limit.
  expect(text).toContain('5 requests were admitted and 1 refused. The limits admit at most 50 in one hour.');
  expect(text).toMatch(/limit of a minute.*GET \/v1\/pets\/\{petId\}/s);
  await page.locator('button[aria-pressed=false]').click();
  expect(await page.$$eval('.column', (columns) => columns.length)).toBe(30);
  for (const theme of ['light', 'dark']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    expect([theme, await axeFindings(page)]).toEqual([theme, []]);
  }
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  const stored = await page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML])',
  );
  expect(stored).not.toContain(secret);

  await page.setRequestInterception(true);
  page.on('request', (request) =>
    request.url().includes('/limits/usage')
      ? request.respond({ status: 503, contentType: 'application/json', body: '{"message":"away"}' })
      : request.continue(),
  );
  await page.locator('::-p-text(Refresh)').click();
  await page.waitForSelector('.near');
  expect(await textOf(page, 'section')).toMatchObject([
    expect.stringMatching('Limitsthis minute5 of 5'),
    'Usageaway',
  ]);
  // The browser console reports only the 401 for the guessed key, and the 503.
  expect(complaints).toMatchObject([expect.stringContaining('401'), expect.stringContaining('503')]);
});

it('the page for key holders shows a new secret until its reader leaves the page', async () => {
  const operator = makeToken('write', 'alice');
  const { origin, adminPort } = await startStoreGateway(store, undefined, {
    limitsPath: '/limits',
    keys: { directory: true },
    redis: { url: redisUrl(), prefix: freshPrefix() },
    selfService: { rotate: true },
    admin: { host: '127.0.0.1', port: 0, tokens: [operator.entry] },
  });
  const json = { id: 'customer', plan: 'free' };
  const issued = await askAdmin(adminPort, '/api/v1/keys', { method: 'POST', token: operator.token, json });
  const { page, complaints } = await watchedPage(browser, origin, 390);
  await page.goto(`${origin}/limits`);
  await page.type('#key', issued.body.secret);
  await page.keyboard.press('Enter');
  // The first response is lost on its way to the browser.
  await page.setRequestInterception(true);
  let lost = '';
  page.on('request', async (request) => {
    if (lost !== '' || !request.url().endsWith('/rotate')) return request.continue();
    const response = await fetch(request.url(), { method: 'POST', headers: request.headers() });
    lost = ((await response.json()) as { secret: string }).secret;
    return request.abort();
  });
  for (const click of ['Get a new secret', 'Get a new secret now'])
    await page.locator(`::-p-text(${click})`).click();
  await page.waitForSelector('::-p-text(may have been lost)');
  await page.locator('::-p-text(Get a new secret now)').click();
  const [secret = ''] = await page.waitForSelector('code').then(() => textOf(page, 'code'));
  expect(secret).toMatch(/^tg_/);
  // The page sends its next requests with the new secret.
  const reads = page.waitForResponse(`${origin}/limits/deprecated`);
  await page.locator('::-p-text(Refresh)').click();
  expect((await reads).status()).toBe(200);
  expect(await textOf(page, 'code')).toEqual([secret]);
  const statusOf = async (one: string) =>
    (await fetch(`${origin}/limits`, { headers: { authorization: `Bearer ${one}` } })).status;
  expect([await statusOf(lost), await statusOf(secret)]).toEqual([401, 200]);
  await page.evaluate('dispatchEvent(new Event("pagehide"))');
  expect(await page.evaluate('document.documentElement.outerHTML')).not.toMatch(/tg_|customer/);
  expect(complaints).toEqual([
    expect.stringMatching(/^failed: .*\/rotate$/),
    expect.stringContaining('ERR_FAILED'),
  ]);
});

it('the page for key holders shows the limits of groups', async () => {
  const { key, send, port } = await startGroups({
    settings: { limitsPath: '/limits' },
    plans: {
      small: {
        ...plan,
        groups: { ...plan.groups, [longGroup]: { operations: ['yearly'], perDay: 900 } },
        changes: [{ from: '2099-01-01', perMinute: 60, groups: { reports } }],
      },
    },
    // The pages request usage by the clock of the browser.
    atMs: Date.now(),
  });
  for (let request = 0; request < 60; request++) await send(request < 6 ? '/report' : '/pets');
  const words = (element: Element) => (element.textContent ?? '').replaceAll(/\s+/g, ' ').trim();

  const holder = await watchedPage(browser, `http://127.0.0.1:${port}`, 900);
  await holder.page.goto(`http://127.0.0.1:${port}/limits`);
  await holder.page.type('#key', `${key.secret}\n`);
  await holder.page.waitForSelector('#shown:not([hidden]) .window');
  const bars = await holder.page.$$eval('.window', (all) => all.map(({ textContent }) => textContent));
  expect(bars[2]).toMatch(
    /^reports: this minute5 of 5 used, 0 leftstarts over .* · for createReport, exportReport$/,
  );
  expect(bars[4]).toMatch(
    /^exports: this day0 of 20 used, 20 leftstarts over .* · for exportReport, yearly$/,
  );
  expect(await holder.page.$eval('#shown .bad', words)).toMatch(
    /^The limit of this minute for the group reports \(5\) is used up\. It starts over at [^.]*\.$/,
  );
  expect(await holder.page.$eval('#shown li', words)).toMatch(
    /: 60 a minute, 5 a minute for the group reports, 8 an hour for the group reports$/,
  );
  expect([await axeFindings(holder.page), holder.complaints]).toEqual([[], []]);

  // A name of 40 characters, which has no place to break, makes no page wider than a phone.
  await holder.page.setViewport({ width: 390, height: 800 });
  expect(await holder.page.evaluate('document.documentElement.scrollWidth > window.innerWidth')).toBe(false);
});
