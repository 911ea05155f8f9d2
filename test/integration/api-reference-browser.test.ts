import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { startBrowser, watchedPage } from '../support/browser.ts';
import { plans } from '../support/gateway-process.ts';
import { type StoreProcess, startStoreHere } from '../support/store-process.ts';
import { startStoreGateway, textOf } from './store-gateway-fixture.ts';

/** The API reference in a browser, with the pet store as the backend. CORS is off, which is the default. */
let browser: Browser;
let store: StoreProcess;

beforeAll(async () => {
  [browser, store] = await Promise.all([startBrowser(), startStoreHere()]);
});
afterAll(async () => {
  await browser.close();
  await store.stop();
});

async function open(page: Page, url: string): Promise<void> {
  await page.goto(url, { waitUntil: 'networkidle0' });
  await page.waitForSelector('.opblock');
}

const attack =
  '<img src=data:, onerror=attacked()><script>attacked()</script><a href="javascript:attacked()">x</a>';

for (const width of [1280, 390])
  it(`the API reference at ${width} px shows operations and plans, and tries an operation with a key that stays in the page, and runs no text of the document as code`, {
    tags: width === 390 ? ['full'] : [],
  }, async () => {
    // Only the wide page gets the hostile text, because this text is wider than a narrow page.
    const hostile = width === 1280 ? attack : '';
    const { origin, secret } = await startStoreGateway(store, (document) =>
      document
        .replace('operationId: listOrders', 'operationId: listOrders\n      x-stability: beta')
        .replace('A store of animals', `${hostile} A store of animals`.trim())
        .replace('summary: List animals', `summary: 'List ${hostile}'`)
        .replace('title: Animal Store Service', `title: 'Animal Store Service${hostile}'`),
    );
    const { page, complaints } = await watchedPage(browser, origin, width);
    let attacks = 0;
    await page.exposeFunction('attacked', () => {
      attacks += 1;
    });
    // By default, Swagger UI loads the document that the query parameter `url` names. The page must not load a document from another
    // server.
    await open(page, `${origin}/docs?url=https://example.com/openapi.json`);

    expect(await page.title()).toBe(`Animal Store Service${hostile}`);
    expect(await page.$$('[onerror], .info script, a[href^="javascript"]')).toEqual([]);
    expect(attacks).toBe(0);
    expect(await textOf(page, '.opblock [data-path]')).toEqual([
      '/store/orders',
      '/pets',
      '/pets',
      '/pets/{petId}',
    ]);
    expect(await textOf(page, '#operations-Store-listOrders .badge')).toEqual(['beta']);
    expect(await textOf(page, '#operations-Pets-getPet .badge')).toEqual(['deprecated']);
    expect(await textOf(page, '.badge')).toHaveLength(2);
    expect(await textOf(page, '.info tbody tr')).toEqual([
      'free601,000',
      'pro30010,000',
      'business1,000100,000',
      'enterprisecustomcustom',
    ]);

    await page.locator('.btn.authorize').click();
    await page.waitForSelector('.auth-container input');
    // A paste is one event. Swagger UI renders the page again after each event.
    await page.focus('.auth-container input');
    await page.keyboard.sendCharacter(secret);
    await page.locator('.auth-btn-wrapper .authorize').click();
    await page.locator('.auth-btn-wrapper .btn-done').click();
    const listPets = '#operations-Pets-listPets';
    await page.locator(`${listPets} .opblock-summary-control`).click();
    await page.waitForSelector(`${listPets} .try-out__btn`);
    await page.locator(`${listPets} .try-out__btn`).click();
    await page.waitForSelector(`${listPets} .execute`);
    await page.locator(`${listPets} .execute`).click();
    await page.waitForSelector(`${listPets} .live-responses-table .response`);
    expect(await textOf(page, `${listPets} .live-responses-table .response .response-col_status`)).toEqual([
      '200',
    ]);
    const [told] = await textOf(
      page,
      `${listPets} .live-responses-table .response .response-col_description`,
    );
    for (const text of [
      'Response body',
      'x-ratelimit-limit: 60',
      'x-ratelimit-remaining: 59',
      'x-ratelimit-reset: ',
      'ratelimit-policy: "minute";q=60',
    ]) {
      expect(told).toContain(text);
    }
    // A click opens the descriptions of the response headers.
    await page.locator(`${listPets} .responses-table .response-headers summary`).click();
    expect((await textOf(page, `${listPets} .response-headers[open]`))[0]).toContain('X-RateLimit-Remaining');

    expect(await page.evaluate('[{ ...localStorage }, { ...sessionStorage }, document.cookie]')).toEqual([
      {},
      {},
      '',
    ]);
    // No element is wider than the window.
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    if (width === 390) {
      await page.reload({ waitUntil: 'networkidle0' });
      await page.waitForSelector('.opblock');
      expect(
        await page.$$('.authorization__btn[aria-label$="unlocked"], .btn.authorize.unlocked'),
      ).not.toEqual([]);
      expect(await page.content()).not.toContain(secret);
    }
    // The browser console reports each inline event handler that the CSP has blocked.
    const others = complaints.filter((text) => !text.startsWith('Executing inline event handler'));
    expect(others).toEqual([]);
  });

it('plans with long names and many windows scroll in their own frame on a narrow page', {
  tags: 'full',
}, async () => {
  const limits = { perSecond: 10, perMinute: 60, perHour: 1_000, perDay: 10_000, perMonth: 200_000 };
  const { origin } = await startStoreGateway(store, undefined, {
    plans: { ...plans, ['p'.repeat(64)]: limits },
  });
  const { page } = await watchedPage(browser, origin, 390);
  await open(page, `${origin}/docs`);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
});

it('the API reference states that a document cannot be read', { tags: 'full' }, async () => {
  const { origin } = await startStoreGateway(store);
  const { page } = await watchedPage(browser, origin, 1280);
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    if (!request.url().endsWith('/openapi.json')) void request.continue();
    else void request.respond({ status: 429, body: '{"message":"Too many requests."}' });
  });
  await page.goto(`${origin}/docs`);
  await page.waitForSelector('[data-state=failed]');
  expect(await textOf(page, '#reference')).toEqual([
    'The API document could not be read: 429: Too many requests.',
  ]);
});

it('a page opens a WebSocket with its secret in a subprotocol, although the backend selects none', async () => {
  const backend = createServer((_req, res) => void res.end()).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  onTestFinished(() => void backend.close());
  new WebSocketServer({ server: backend }).on('connection', (socket) => socket.send('hello'));
  const { port } = backend.address() as AddressInfo;
  const { origin, secret } = await startStoreGateway(
    store,
    (document) =>
      document.replace('operationId: listOrders', 'operationId: listOrders\n      x-upgrade: websocket'),
    { upstream: { url: `http://127.0.0.1:${port}`, health: '/healthz' } },
  );
  const { page } = await watchedPage(browser, 'about:blank', 1280);
  const open = (protocols: readonly string[]) =>
    page.evaluate(
      (url, offered) =>
        new Promise((resolve) => {
          const socket = new WebSocket(url, offered);
          socket.onmessage = ({ data }) => resolve([socket.protocol, data]);
          socket.onerror = () => resolve('failed');
        }),
      `${origin.replace('http', 'ws')}/v1/store/orders`,
      [...protocols],
    );
  expect(await open(['tollgate', `tollgate.bearer.${secret}`])).toEqual(['tollgate', 'hello']);
  expect(await open(['tollgate', 'tollgate.bearer.unknown'])).toBe('failed');
});

it('the API reference follows the theme of the system, and the choice that this browser keeps for the origin', async () => {
  const { origin } = await startStoreGateway(store, (document) => document);
  const { page, complaints } = await watchedPage(browser, origin, 1280);
  await open(page, `${origin}/docs`);
  const isDark = () =>
    page.$eval('.opblock-summary-path', (path) => {
      const light = (colour: string) => Number(/\d+/.exec(colour)?.[0]) > 128;
      const [text, ground] = [getComputedStyle(path).color, getComputedStyle(document.body).backgroundColor];
      return light(text) && !light(ground);
    });
  expect(await isDark()).toBe(false);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await expect.poll(isDark).toBe(true);
  await page.evaluate("localStorage.setItem('theme', 'light')");
  await open(page, `${origin}/docs`);
  expect([await isDark(), complaints]).toEqual([false, []]);
});
