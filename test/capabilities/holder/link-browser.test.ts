import type { Browser } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { textOf } from '../../integration/store-gateway-fixture.ts';
import { axeFindings, openWithToken, startBrowser, watchedPage } from '../../support/browser.ts';
import { startLinked } from './start-linked.ts';

/** The page for key holders, opened by a link. */
let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

it('a link opens the page without a secret, leaves the address, and has no button for a new secret', async () => {
  const { fleet, link, ask } = await startLinked();
  const [origin = ''] = fleet.origins;
  const { token, digestStart: start } = await link();
  const { page, complaints } = await watchedPage(browser, origin, 390);
  const asked: string[] = [];
  page.on('request', (request) => void asked.push(request.url()));
  await page.goto(`${origin}/limits?from=mail#${token}`);
  await page.waitForSelector('#shown:not([hidden]) section');
  expect(await page.evaluate('location.href')).toBe(`${origin}/limits?from=mail`);
  const [text = ''] = await textOf(page, '#shown');
  expect(text).toMatch(
    /This page was opened by a link that alice made\. The link ends on \d{4}-\d\d-\d\d \d\d:\d\d UTC\./,
  );
  expect(await textOf(page, '#shown .head button')).toEqual(['Refresh', 'Forget the link']);
  expect(text).not.toContain('new secret');
  // The token is in no address of a request, and in nothing that the browser keeps.
  expect(asked.filter((url) => url.includes('tgl_') && !url.includes('#'))).toEqual([]);
  const kept = await page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state, document.documentElement.outerHTML])',
  );
  expect(kept).not.toContain('tgl_');
  for (const theme of ['light', 'dark']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    expect([theme, await axeFindings(page)]).toEqual([theme, []]);
  }
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);

  // Another link in the same tab changes only the fragment.
  const other = await link();
  await page.evaluate(`location.hash = ${JSON.stringify(other.token)}`);
  await page.waitForFunction('!location.hash');
  await page.waitForSelector('#shown:not([hidden]) section');

  // A link that ended says so.
  await ask('DELETE', '/keys/acme/links');
  await page.locator('::-p-text(Refresh)').click();
  await page.waitForSelector('#failure:not([hidden])');
  expect(await textOf(page, '#failure')).toEqual([
    'This link has ended or is not complete: ask the API team for a new link.',
  ]);
  expect(start).toMatch(/^[0-9a-f]{8}$/);
  await page.evaluate('dispatchEvent(new Event("pagehide"))');
  expect(await page.evaluate('document.documentElement.outerHTML')).not.toMatch(/acme|alice/);
  expect(complaints).toEqual([expect.stringContaining('401')]);
});

it('a link that could not be read at first opens the page at the next attempt, and other fragments stay', async () => {
  const { fleet, link } = await startLinked();
  const [origin = ''] = fleet.origins;
  const { token } = await link();
  const { page } = await watchedPage(browser, origin, 1280);
  await page.setRequestInterception(true);
  let isAway = true;
  page.on('request', (request) => {
    const isData = request.headers().authorization !== undefined;
    return isAway && isData
      ? request.respond({ status: 503, contentType: 'application/json', body: '{"message":"away"}' })
      : request.continue();
  });
  await page.goto(`${origin}/limits#${token}`);
  await page.waitForSelector('#failure:not([hidden])');
  isAway = false;
  await page.locator('::-p-text(Show)').click();
  await page.waitForSelector('#shown:not([hidden]) section');
  expect(await page.$eval('#key', (input) => (input as HTMLInputElement).value)).toBe('');

  await page.goto('about:blank');
  await page.goto(`${origin}/limits#<img src=x onerror=alert(1)>`);
  expect(await page.evaluate('document.getElementById("shown").hidden')).toBe(true);
  expect(await page.evaluate('location.hash')).not.toBe('');
});

it('an operator makes and ends links on the page of the key', async () => {
  const { fleet, open, link, alice } = await startLinked();
  const adminUrl = fleet.gateways[0]?.adminUrl ?? '';
  const { page, complaints } = await watchedPage(browser, adminUrl, 390);
  await openWithToken(page, `${adminUrl}/keys/acme`, alice.token);
  await page.locator('::-p-text(Make a link…)').click();
  await page.select('#link-for', '24h');
  await page.locator('dialog .main').click();
  await page.waitForSelector('dialog .secret');
  expect(await axeFindings(page)).toEqual([]);
  const [url = ''] = await textOf(page, 'dialog .secret');
  const [, token = ''] = url.split('#');
  expect((await open(token)).status).toBe(200);
  await page.keyboard.press('Escape');
  await page.waitForFunction("document.querySelector('dialog') === null");
  expect(await textOf(page, '.result')).toEqual([
    'A link opens the page of acme for 24 hours. This applies on 2 processes.',
  ]);
  expect(await page.evaluate('document.documentElement.outerHTML')).not.toContain(token.slice(0, 20));
  await page.waitForSelector('::-p-text(A link of alice opens)');

  // One of two links ends by the button beside it.
  const other = await link();
  const end = `button[aria-label^="End the link ${other.digestStart}"]`;
  await page.locator(end).click();
  await page.waitForSelector('dialog[open]');
  expect(await axeFindings(page)).toEqual([]);
  await page.locator('dialog .main').click();
  await page.waitForFunction("document.querySelector('dialog') === null");
  await page.waitForFunction(`document.querySelector('${end}') === null`);
  expect(await textOf(page, '.result')).toEqual([
    `The link ${other.digestStart}… no longer opens the page of acme. This applies on 2 processes.`,
  ]);
  expect([(await open(other.token)).status, (await open(token)).status]).toEqual([401, 200]);

  await page.locator('::-p-text(End the links…)').click();
  await page.locator('dialog .main').click();
  await page.waitForFunction("document.querySelector('dialog') === null");
  expect((await open(token)).status).toBe(401);
  expect(complaints).toEqual([]);
});
