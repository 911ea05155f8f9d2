import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { webhookEventTypes } from '../../../gateway/shared/words/event-names.js';
import {
  axeFindings,
  openTab,
  openWithToken,
  startBrowser,
  type Tab,
  watchedPage,
} from '../../support/browser.ts';
import { startDeliveries } from './start-deliveries.ts';

/** The tests open the pages of the webhook deliveries in a browser. */
let browser: Browser;
let tab: Tab;
let started: Awaited<ReturnType<typeof startDeliveries>>;
let origin: string;

beforeAll(async () => {
  [browser, started] = await Promise.all([startBrowser(), startDeliveries()]);
  origin = `http://127.0.0.1:${started.port}`;
  tab = await openTab(browser, origin, started.writer.token);
});
afterEach(() => {
  expect(tab.complaints.splice(0)).toEqual([]);
});
afterAll(async () => {
  await Promise.all([browser.close(), started.close()]);
});

const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim() ?? ''));

async function eventId(query: string): Promise<string> {
  const { body } = await started.ask(`/deliveries${query}`);
  return body.events[0].id;
}

it('the page first states what waits and why, and its filters are in the URL', async () => {
  const page = await tab.show('/deliveries', '.deliveries tbody tr');
  const [counts, problem] = await textOf(page, '.sentence p');
  expect(counts).toBe('0 failed, 2 waiting, 4 delivered.');
  expect(problem).toMatch(/\/\*\*\*: 2 waiting\. It last failed at [\d:]+ \(status 500\)\./);
  expect(await textOf(page, '.deliveries tbody td.id')).toHaveLength(6);
  await page.locator('.sentence a[href="/deliveries?state=waiting"]').click();
  await expect.poll(() => textOf(page, '.deliveries tbody .state')).toEqual(['waiting', 'waiting']);
  const options = await page.$$eval('select[aria-label=Event] option', (all) =>
    all.map(({ textContent }) => textContent),
  );
  expect(options).toEqual(['any event', ...webhookEventTypes]);
  await page.select('select[aria-label=Event]', 'key.revoked');
  await page.waitForFunction(
    "document.querySelector('.empty')?.textContent === 'No delivery matches these filters.'",
  );
  expect(new URL(page.url()).search).toBe('?state=waiting&type=key.revoked');
  expect(await page.content()).not.toContain('a-token-in-the-path');
});

it('a row opens the event with its body, and a button sends the event again to one receiver', async () => {
  const id = await eventId('?subject=key+acme&type=key.created');
  const page = await tab.show('/deliveries?type=key.created&subject=key+acme', '.deliveries tbody tr');
  await page.locator(`a[href="/deliveries/${id}"]`).click();
  await page.waitForSelector('pre.body');
  expect(await textOf(page, '.sentence')).toEqual([expect.stringMatching(/^alice (created|issued) /)]);
  const all = await page.$eval('.sentence a[href^="/deliveries?"]', (link) => link.getAttribute('href'));
  expect(all).toBe('/deliveries?subject=key+acme');
  expect(await textOf(page, '.sentence a[href="/keys/acme"]')).toEqual(['acme']);
  expect(JSON.parse((await textOf(page, 'pre.body'))[0] ?? '')).toMatchObject({ type: 'key.created' });
  expect(await textOf(page, 'nav [aria-current=page]')).toEqual(['Deliveries']);

  started.refusing.status = 204;
  await page.locator('tbody tr:nth-child(2) button').click();
  await page.waitForSelector('dialog[open]');
  expect((await textOf(page, 'dialog p'))[0]).toMatch(/^key\.created is sent to http:\S+\/\*\*\* now\./);
  await page.locator('dialog .main').click();
  await page.waitForFunction("document.querySelector('dialog') === null");
  expect(await textOf(page, '.result')).toEqual([
    expect.stringMatching(/^The event is due now for http:\S+\/\*\*\*\.$/),
  ]);
  await expect
    .poll(() => textOf(page, 'tbody .state'), { timeout: 120_000 })
    .toEqual(['delivered', 'delivered']);
  expect(started.refusing.received.at(-1)?.id).toBeDefined();
  expect(started.accepting.received.filter((event) => event.id === id)).toHaveLength(1);
});

it('a read token gets no button, and an unknown event gets a message', async () => {
  const id = await eventId('?type=config.rejected');
  const { page, complaints } = await watchedPage(browser, origin, 1280);
  await openWithToken(page, `${origin}/deliveries/${id}`, started.reader.token);
  await page.waitForSelector('pre.body');
  await page.waitForFunction("document.querySelector('.facts')?.textContent.includes('1 process')");
  expect(await textOf(page, 'main .actions button, main td button')).toEqual([]);
  expect(complaints).toEqual([]);
  await page.goto(`${origin}/deliveries/evt_none`);
  await page.waitForFunction(
    "document.querySelector('.empty')?.textContent.startsWith('The queue has no event')",
  );
});

it.each(['/deliveries', '/deliveries/{id}'])(
  '%s works at each width, light and dark, without a finding of axe',
  { tags: 'full' },
  async (path) => {
    // The longest id of a key does not make the page wider than the window.
    const key = 'x'.repeat(100);
    await started.ask('/keys', { method: 'POST', json: { id: key, plan: 'free' } });
    const id = await eventId(`?subject=key+${key}`);
    const { page, complaints } = await watchedPage(browser, origin, 1280);
    await openWithToken(page, `${origin}${path.replace('{id}', id)}`, started.writer.token);
    await page.waitForSelector('tbody tr');
    await page.waitForFunction("document.querySelector('.facts')?.textContent.includes('1 process')");
    for (const width of [1280, 768, 390]) {
      await page.setViewport({ width, height: 900 });
      for (const theme of ['light', 'dark']) {
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
        expect([width, theme, await axeFindings(page)]).toEqual([width, theme, []]);
      }
    }
    expect(complaints).toEqual([]);
  },
);
