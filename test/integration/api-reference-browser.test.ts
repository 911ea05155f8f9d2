import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { axeFindings, startBrowser, watchedPage } from '../support/browser.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey, plans } from '../support/gateway-process.ts';
import { settingsOf } from '../support/settings-of.ts';
import { type StoreProcess, startStoreHere } from '../support/store-process.ts';

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

/** Starts a gateway with the shipped API document, which `edit` may change. */
async function start(
  edit: (document: string) => string = (document) => document,
  overrides: Record<string, unknown> = {},
) {
  const key = makeKey();
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  const api = join(folder, 'openapi.yaml');
  await writeFile(api, edit(await readFile('config/openapi.yaml', 'utf8')));
  const settings = await settingsOf({
    upstream: { url: store.url, health: '/healthz' },
    keys: [key.entry],
    docsPath: '/docs',
    api,
    ...overrides,
  });
  await rm(folder, { recursive: true });
  const log = { logger: pino({ level: 'silent' }), access: () => {} };
  // The clock stands still, so no window starts over during a test.
  const startedMs = Date.now();
  const gateway = createGateway({ settings, log, nowMs: () => startedMs });
  const { listen, admin } = await gateway.start();
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  return { origin: `http://127.0.0.1:${listen.port}`, secret: key.secret, adminPort: admin.port };
}

async function open(page: Page, url: string): Promise<void> {
  await page.goto(url, { waitUntil: 'networkidle0' });
  await page.waitForSelector('.opblock');
}

const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim()));

const attack =
  '<img src=data:, onerror=attacked()><script>attacked()</script><a href="javascript:attacked()">x</a>';

for (const width of [1280, 390])
  it(`the API reference at ${width} px shows operations and plans, and tries an operation with a key that stays in the page, and runs no text of the document as code`, {
    tags: width === 390 ? ['full'] : [],
  }, async () => {
    // Only the wide page gets the hostile text, because this text is wider than a narrow page.
    const hostile = width === 1280 ? attack : '';
    const { origin, secret } = await start((document) =>
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
  const { origin } = await start(undefined, { plans: { ...plans, ['p'.repeat(64)]: limits } });
  const { page } = await watchedPage(browser, origin, 390);
  await open(page, `${origin}/docs`);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
});

it('the API reference states that a document cannot be read', { tags: 'full' }, async () => {
  const { origin } = await start();
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

it('the page for key holders shows limits, usage and refusals of the entered key, and keeps the key in its memory alone', async () => {
  const { origin, secret } = await start(undefined, {
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
  const { origin, adminPort } = await start(undefined, {
    limitsPath: '/limits',
    keys: { directory: true },
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

it('a page opens a WebSocket with its secret in a subprotocol, although the backend selects none', async () => {
  const backend = createServer((_req, res) => void res.end()).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  onTestFinished(() => void backend.close());
  new WebSocketServer({ server: backend }).on('connection', (socket) => socket.send('hello'));
  const { port } = backend.address() as AddressInfo;
  const { origin, secret } = await start(
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
