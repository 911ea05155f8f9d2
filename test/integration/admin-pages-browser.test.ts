import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pino } from 'pino';
import type { Browser, HTTPRequest, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Gateway } from '../../gateway/server/gateway.ts';
import type { Settings } from '../../gateway/shared/model.ts';
import { milliseconds } from '../../gateway/shared/words/figures.js';
import { makeToken } from '../support/admin-client.ts';
import {
  axeFindings,
  enterToken,
  openTab,
  openWithToken,
  startBrowser,
  type Tab,
  watchedPage,
} from '../support/browser.ts';
import { capabilityCases, type PageCase } from '../support/capability-cases.ts';
import { createGateway } from '../support/create-gateway.ts';
import { freePort } from '../support/free-port.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey, plans } from '../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { settingsOf } from '../support/settings-of.ts';
import { startRedis } from '../support/start-redis.ts';
import { type StoreProcess, startStoreHere } from '../support/store-process.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The browser that opens the operators' pages of real gateways. The backend of the gateways is the pet store. */
let browser: Browser;
let profile: string;
let store: StoreProcess;
let shared: Running;
/** The browser tab that shows the pages of the shared gateway. */
let tab: Tab;
/** All requests that the tab has sent. */
const sent: HTTPRequest[] = [];

const { token, entry } = makeToken('read', 'ada');
const attack = '<img src=x onerror=attacked()><b>bold</b>';
const [calm, limited, banned, hostile] = [
  makeKey({ id: 'calm', plan: 'business' }),
  makeKey({ id: 'acme', plan: 'free' }),
  makeKey({ id: 'globex', plan: 'free' }),
  makeKey({ id: 'a+b@c:d', plan: 'free' }),
];
const keys = [calm.entry, limited.entry, banned.entry, { ...hostile.entry, name: attack }];
const keysById = new Map([calm, limited, banned, hostile].map((key) => [key.entry.id, key]));
// The timeouts are long, so that a slow response on a busy machine does not cause an event about a target.
const bounds = tunedBounds({
  ...patientGateway,
  presenceExpiryMs: 60_000,
  // Each window lasts at least five minutes. A key that has reached its limit is still limited when the page reads the key again.
  windowsMs: freshWindows(Date.now()),
});
const log = { logger: pino({ level: 'silent' }), access: () => {} };

interface Running {
  readonly gateway: Gateway;
  readonly settings: Settings;
  readonly api: string;
  readonly origin: string;
}

async function start(
  overrides: Record<string, unknown> = {},
  change: Partial<Settings> = {},
): Promise<Running> {
  const settings = {
    ...(await settingsOf({
      upstream: { url: store.url, health: '/healthz' },
      plans,
      keys,
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
      // The ban lasts longer than these tests take on a busy machine.
      bans: { for: '1h' },
      ...overrides,
    })),
    ...change,
  };
  const gateway = createGateway({ settings, log, bounds });
  const { listen, admin } = await gateway.start();
  return {
    gateway,
    settings,
    api: `http://127.0.0.1:${listen.port}/v1`,
    origin: `http://127.0.0.1:${admin.port}`,
  };
}

/** Starts a gateway that stops at the end of the test. */
async function startForTest(...options: Parameters<typeof start>): Promise<Running> {
  const running = await start(...options);
  onTestFinished(() => running.gateway.drain({ graceMs: 0 }));
  return running;
}

async function send(api: string, secret: string, times: number, path = '/pets?limit=1'): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` };
  for (let sent = 0; sent < times; sent++) await (await fetch(`${api}${path}`, { headers })).arrayBuffer();
}

beforeAll(async () => {
  profile = await mkdtemp(join(tmpdir(), 'tollgate-browser-'));
  [browser, store] = await Promise.all([startBrowser({ userDataDir: profile }), startStoreHere()]);
  shared = await start();
  await send(shared.api, calm.secret, 20);
  await send(shared.api, calm.secret, 2, '/pets/1');
  await send(shared.api, limited.secret, 70);
  await send(shared.api, banned.secret, 170);
  await send(shared.api, hostile.secret, 1);
  shared.gateway.reload(shared.settings);
  shared.gateway.reportFailedReload('gateway.yaml:3:1: `plans` must be a mapping', '0123456789ab');
  shared.gateway.reload(shared.settings);
  tab = await openTab(browser, shared.origin, token);
  tab.page.on('request', (request) => sent.push(request));
});
afterEach(() => {
  expect(tab.complaints.splice(0)).toEqual([]);
});
afterAll(async () => {
  await shared.gateway.drain({ graceMs: 0 });
  await browser.close();
  await store.stop();
  await rm(profile, { recursive: true, force: true });
});

async function open(page: Page, { origin }: Running, path: string, ready: string): Promise<void> {
  await openWithToken(page, `${origin}${path}`, token);
  await page.waitForSelector(ready);
}

const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim() ?? ''));
const firstText = async (page: Page, selector: string) => (await textOf(page, selector))[0] ?? '';

const allPages: readonly PageCase[] = [
  ['/', ['.verdict .well', '.figure', '.rows li'], '/traffic'],
  ['/keys', ['tbody tr', 'td.windows .bar'], '/keys?'],
  ['/keys?q=nobody', ['.empty a', '.filters'], '/keys?'],
  ['/keys/acme', ['.why p', '.chart canvas', '.heading + div'], '/keys/acme/usage'],
  ['/plans?plan=free', ['.spread .limit'], '/state'],
  [
    '/operations?operation=getPet',
    ['.operations .section:nth-of-type(2) tbody tr', 'tbody .state.near'],
    '/operations',
  ],
  ['/upstreams', ['.upstreams tbody tr', '.section .tools'], '/upstreams'],
  ['/events', ['.events .what', '.paging'], '/events'],
  ['/changes', ['.changes .error', '.paging'], '/changes'],
  ['/settings', ['.settings td .muted', '.settings .sentence a[href="/keys"]'], '/settings'],
  ...(await capabilityCases()).flatMap(({ pages }) => pages ?? []),
];
const widths = [1280, 390];

it('every page shows its figures without a complaint of the browser', async () => {
  for (const [path, parts] of allPages) {
    const page = await tab.show(path, parts[0]);
    for (const part of parts) await page.waitForSelector(part);
    expect([path, tab.complaints]).toEqual([path, []]);
  }
});

it.each(allPages)(
  '%s works wide and narrow, light and dark: no layout shift, no complaint of the browser, no finding of axe',
  { tags: 'full' },
  async (path, parts, asked) => {
    const { page, complaints } = await watchedPage(browser, shared.origin, 1280);
    await open(page, shared, path, parts[0]);
    for (const part of parts) await page.waitForSelector(part);
    for (const width of widths) {
      await page.setViewport({ width, height: 900 });
      await askAgain(page, asked);
      await page.evaluate(watchLayout);
      await send(shared.api, calm.secret, 40);
      await send(shared.api, hostile.secret, 5);
      await askAgain(page, asked);
      expect([width, await page.evaluate('window.moved')]).toEqual([width, []]);
      for (const [theme, ground] of [
        ['light', 'rgb(255, 255, 255)'],
        ['dark', 'rgb(16, 21, 27)'],
      ] as const) {
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
        expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe(ground);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
        expect([width, theme, await axeFindings(page)]).toEqual([width, theme, []]);
      }
    }
    // The test shifts the layout once, to show that the observer detects a shift.
    await page.evaluate("document.querySelector('main').style.paddingTop = '100px'");
    await expect.poll(() => page.evaluate('window.moved.length')).toBeGreaterThan(0);
    expect(complaints).toEqual([]);
  },
);

it.each(widths)(
  'the page of a key, %i px wide, does not move when it shows that its figures are old',
  {
    tags: 'full',
  },
  async (width) => {
    const { page } = await watchedPage(browser, shared.origin, width);
    await open(page, shared, '/keys/acme', '.chart canvas');
    await askAgain(page, '/keys/acme/usage');
    await page.evaluate(watchLayout);
    await page.setRequestInterception(true);
    // The page gets no response while the test holds each request.
    const held: HTTPRequest[] = [];
    page.on('request', (request) => held.push(request));
    await expect.poll(() => textOf(page, '.heading .age')).toEqual([expect.stringMatching(/^\d+ s old$/)]);
    expect(await page.evaluate('window.moved')).toEqual([]);
    page.removeAllListeners('request');
    await page.setRequestInterception(false);
    await Promise.all(held.map((request) => request.continue()));
  },
);

it('the windows of a key agree with the sentence above, also after a reset, until the next response', async () => {
  const { page } = await watchedPage(browser, shared.origin, 1280);
  await open(page, shared, '/keys/calm', '.windows .amount');
  await page.setRequestInterception(true);
  // A response that was under way sets the clock of the page back, so the clock may leap more than once.
  await expect
    .poll(async () => {
      await page.evaluate('{ const before = Date.now; Date.now = () => before() + 40 * 86_400_000 }');
      await page.evaluate('new Promise((done) => setTimeout(done, 1_500))');
      return firstText(page, '.windows .resets');
    })
    .toBe('');
  const sentence = await firstText(page, '.why p');
  for (const amount of await textOf(page, '.windows .amount')) expect(sentence).toContain(amount);
});

/** Records the distance and the elements of each layout shift. */
const watchLayout = `
  window.moved = [];
  new PerformanceObserver((list) => {
    // A right-aligned figure begins further left when it gains a digit. Such a change does not count as a layout shift.
    const grew = ({ previousRect: before, currentRect: after }) => before.top === after.top && Math.abs(before.right - after.right) < 1;
    const entries = list.getEntries().filter(({ sources }) => !sources.every(grew));
    window.moved.push(...entries.map(({ value, sources }) => [value, ...sources.map(({ node }) => (node?.outerHTML ?? node?.parentElement?.outerHTML ?? '').slice(0, 200))]));
  }).observe({ type: 'layout-shift' })`;

/** Makes a page request the API immediately, and waits until the page shows the response. */
async function askAgain(page: Page, asked: string): Promise<void> {
  const answered = page.waitForResponse((response) => response.url().includes(`/api/v1${asked}`));
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await answered;
  // The page renders responses twice a second.
  await page.evaluate(
    'new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 500))',
  );
}

describe('the token', () => {
  it('is requested on a narrow page too, and the way to make one is visible without scrolling', {
    tags: 'full',
  }, async () => {
    const { page } = await watchedPage(browser, shared.origin, 390);
    await page.goto(shared.origin);
    await page.waitForSelector('.token pre');
    const cut =
      "[...document.querySelectorAll('.token *')].filter((one) => one.scrollWidth > one.clientWidth && one.clientWidth > 0).map(({ textContent }) => textContent)";
    expect(await page.evaluate(cut)).toEqual([]);
  });

  it('is requested when it is missing; a wrong token shows the message of the API, and the right token opens the page', async () => {
    const { page } = await watchedPage(browser, shared.origin, 390);
    await page.goto(`${shared.origin}/keys?state=banned`);
    await page.waitForSelector('#token');
    expect(await firstText(page, 'pre')).toContain('admin token --name');
    await enterToken(page, 'wrong');
    await page.waitForFunction("(document.querySelector('.refusal')?.textContent ?? '') !== ''");
    expect(await firstText(page, '.refusal')).toBe('The token is not valid.');
    await enterToken(page, token);
    await page.waitForSelector('tbody tr');
    expect(page.url()).toBe(`${shared.origin}/keys?state=banned`);
    expect(await textOf(page, 'tbody td.id a')).toEqual(['globex']);
  });
});

describe('the page', () => {
  it('Now shows the limited and banned keys, with all other figures', async () => {
    const page = await tab.show('/', '.rows li a');
    await expect
      .poll(() => textOf(page, '.rows li'))
      .toContainEqual(expect.stringMatching(/^globex.*banned until/s));
    await expect
      .poll(() => textOf(page, '.happened li'))
      .toContainEqual(expect.stringContaining('globex (free) is banned for'));
    await expect
      .poll(() => textOf(page, '.figure'))
      .toEqual([
        expect.stringMatching(/requests.*\/s$/s),
        expect.stringMatching(/refused.* %$/s),
        expect.stringMatching(/own p50 \/ p99.* ms$/s),
        // Other tests in this file exhaust the limits of further keys.
        expect.stringMatching(/keys limited or banned\s*[1-9]/s),
        expect.stringMatching(/upstream failures, 15 min\s*0/s),
      ]);
    expect(await firstText(page, '.chip')).toBe('test');
    // On a busy machine, the page may briefly show stale figures.
    await expect
      .poll(() => firstText(page, '.facts'))
      .toMatch(/config [0-9a-f]{6} · .*ago.*store memory.*1 process.*targets 1 of 1/s);
  });

  it('Now shows the last point of the chart in the tile with the times of requests', {
    tags: 'full',
  }, async () => {
    const { page } = await watchedPage(browser, shared.origin, 1280);
    await open(page, shared, '/', '.figures');
    await until('the tile is what the API says of the last minute', async () => {
      const headers = { authorization: `Bearer ${token}` };
      const { rows } = await (await fetch(`${shared.origin}/api/v1/traffic`, { headers })).json();
      const { p50Ms, p99Ms } = rows.at(-1).ownTime;
      const [, , tile = ''] = await textOf(page, '.figure');
      return tile.includes(`${milliseconds(p50Ms)} / ${milliseconds(p99Ms)} ms`);
    });
  });

  it('Settings names each setting as the configuration does, with its meaning, and filters them', async () => {
    const page = await tab.show('/settings', '.settings td .muted');
    const rows = () => page.$$eval('.settings tbody tr', (all) => all.map(({ textContent }) => textContent));
    await expect.poll(rows).toContainEqual(expect.stringMatching(/^bans\.for1h.*first ban/));
    expect((await rows()).join()).not.toContain(token);
    expect(await textOf(page, '.settings h2')).toEqual(
      expect.arrayContaining(['General', 'listen', 'Not set']),
    );
    await page.type('.settings input', 'longest nothing');
    await page.waitForSelector('.empty a');
    await page.click('.empty a');
    await page.type('.settings input', 'FIRST ban twice');
    await expect.poll(async () => (await rows()).length).toBe(1);
    expect(page.url()).toContain('/settings?q=FIRST');
  });

  it('Now counts the entries that a list has no room for, on a wide and on a narrow page', {
    tags: 'full',
  }, async () => {
    const seven = Array.from({ length: 7 }, (_, number) => makeKey({ id: `key-${number}`, plan: 'free' }));
    const running = await startForTest({
      keys: seven.map(({ entry }) => entry),
      plans: { free: { perDay: 1 } },
    });
    for (const { secret } of seven) await send(running.api, secret, 2);
    const { page } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/', '.section:not(.happened) .rows li');
    const shown = async (selector: string) =>
      page.$$eval(`.section:not(.happened) ${selector}`, (elements) =>
        elements
          .filter((element) => (element as unknown as { offsetHeight: number }).offsetHeight > 0)
          .map(({ textContent }) => textContent),
      );
    await expect.poll(() => shown('.more')).toEqual(['and 1 more']);
    expect(await shown('.rows li')).toHaveLength(6);
    await page.setViewport({ width: 390, height: 900 });
    await expect.poll(() => shown('.more')).toEqual(['and 3 more']);
    expect(await shown('.rows li')).toHaveLength(4);
  });

  it('a quiet gateway has no cut placeholder and no large hole at 390 px, and titles of one line at 1280 px', {
    tags: 'full',
  }, async () => {
    const running = await startForTest({ keys: [makeKey({ id: 'quiet', plan: 'free' }).entry] });
    const { page } = await watchedPage(browser, running.origin, 390);
    await open(page, running, '/', '.lists .section:nth-child(2) .empty:not([role])');
    await page.waitForSelector('.lists .section:first-child .empty:not([role])');
    const roomOfPlaceholder = `(() => {
      const field = document.querySelector('#search');
      const { font, paddingLeft, paddingRight } = getComputedStyle(field);
      const drawing = document.createElement('canvas').getContext('2d');
      drawing.font = font;
      return field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - drawing.measureText(field.placeholder).width;
    })()`;
    expect(await page.evaluate(roomOfPlaceholder)).toBeGreaterThanOrEqual(0);
    const holes = `[...document.querySelectorAll('.section.lines')].map((section) =>
      section.getBoundingClientRect().bottom - section.querySelector('.empty').getBoundingClientRect().bottom)`;
    for (const hole of (await page.evaluate(holes)) as number[]) expect(hole).toBeLessThan(60);
    await page.setViewport({ width: 1280, height: 900 });
    await open(page, running, '/keys', 'tbody tr');
    const lines = `[...document.querySelectorAll('.keys th')].map((title) => {
      const range = document.createRange();
      range.selectNodeContents(title);
      return range.getClientRects().length;
    })`;
    const counts = (await page.evaluate(lines)) as number[];
    expect(counts.length).toBeGreaterThan(5);
    expect(Math.max(...counts)).toBe(1);
  });

  it.each([1280, 900, 600, 390])(
    'Now, %i px wide, does not move when its verdict names all refusals',
    {
      tags: 'full',
    },
    async (width) => {
      const running = await startForTest({ addressBucket: { perMinute: 2 } });
      const { page } = await watchedPage(browser, running.origin, width);
      await open(page, running, '/', '.verdict .well');
      await askAgain(page, '/state');
      expect(await firstText(page, '.verdict .first')).toContain('No request arrived');
      await page.evaluate(watchLayout);
      await send(running.api, limited.secret, 61);
      await send(running.api, 'nobody', 6);
      const sentence = /Refused: .* over a limit .* their address .* valid key/;
      await expect.poll(() => firstText(page, '.verdict .first')).toMatch(sentence);
      await askAgain(page, '/traffic');
      expect(await page.evaluate('window.moved')).toEqual([]);
    },
  );

  it('Now shows the time of an event beside the first line of its text', {
    tags: 'full',
  }, async () => {
    const { page } = await watchedPage(browser, shared.origin, 1280);
    await open(page, shared, '/', '.happened .rows li');
    // The first rectangle of a text belongs to the first line of the text. The first lines of both texts may be 5 px apart, which is a
    // quarter of a line.
    const apart = `[...document.querySelectorAll('.happened .rows li')].map((row) => {
      const [when, what] = ['.when', '.what'].map((name) => {
        const range = document.createRange();
        range.selectNodeContents(row.querySelector(name));
        return range.getClientRects()[0].top;
      });
      return Math.abs(when - what);
    }).filter((distance) => distance > 5)`;
    expect(await page.evaluate(apart)).toEqual([]);
  });

  it('Now and Operations agree about a sunset, and do not call an operation that is still served removed', {
    tags: 'full',
  }, async () => {
    const dayMs = 86_400_000;
    const operations = shared.settings.operations.map((operation) => {
      const sinceMs = Date.UTC(2025, 0, 1);
      if (operation.id === 'getPet')
        return {
          ...operation,
          deprecation: { sinceMs, sunsetMs: Date.now() + 11.5 * dayMs, afterSunset: 'gone' as const },
        };
      if (operation.id !== 'listOrders') return operation;
      const sunsetMs = Date.now() - 3.5 * dayMs;
      return { ...operation, deprecation: { sinceMs, sunsetMs, afterSunset: 'serve' as const } };
    });
    const running = await startForTest({}, { operations });
    await send(running.api, calm.secret, 1, '/pets/1');
    await send(running.api, calm.secret, 1, '/store/orders');
    const { page } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/', '.rows li b');
    await expect
      .poll(() => textOf(page, '.rows li').then((lines) => lines.filter((line) => line.includes('sunset'))))
      .toEqual([
        expect.stringMatching(/^listOrders.*past its sunset/s),
        expect.stringMatching(/^getPet.*sunset in 11 days/s),
      ]);
    await open(page, running, '/operations', 'tbody .state');
    expect((await textOf(page, '[data-label=State]')).slice(0, 2)).toEqual([
      expect.stringMatching(/^deprecated sunset 3 days ago/),
      expect.stringMatching(/^deprecated removed in 11 days/),
    ]);
  });

  it('Operations shows who calls a deprecated operation, and keeps the chosen period', async () => {
    const operations = shared.settings.operations.map((operation) => {
      const sunsetMs = Date.now() + 5.5 * 86_400_000;
      if (operation.id === 'getPet')
        return { ...operation, deprecation: { sunsetMs, afterSunset: 'gone' as const } };
      if (operation.id !== 'listOrders') return { ...operation, deprecation: undefined };
      return {
        ...operation,
        deprecation: { sunsetMs: sunsetMs + 86_400_000, afterSunset: 'serve' as const },
      };
    });
    const running = await startForTest({}, { operations });
    await send(running.api, calm.secret, 2, '/pets/1');
    const { page, complaints } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/operations?period=7d', '.deprecated tbody tr');
    expect(await textOf(page, '.deprecated tbody tr')).toEqual([
      expect.stringMatching(/^getPet GET .*removed in 5 days.*calm\s*business\s*2/s),
      expect.stringMatching(/^listOrders GET .*sunset in 6 days.*served afterwards.*no known caller\s*0/s),
    ]);
    expect(await firstText(page, 'h1')).toBe('Operations, 7 days');
    await page.click('.deprecated tbody a');
    await page.waitForSelector('.trend');
    expect(new URL(page.url()).search).toBe('?period=7d&operation=getPet');
    expect(await firstText(page, '.trend code')).toMatch(
      /^tollgate callers getPet --from \S+T\d\d:00Z --csv$/,
    );
    expect(await axeFindings(page)).toEqual([]);

    await open(page, running, '/operations?from=2026-01-01&to=2026-01-02', '.deprecated tbody tr');
    expect(await firstText(page, '.operations p.near')).toMatch(/^The usage record begins at \d{4}-/);
    expect(await textOf(page, '.deprecated tbody tr')).toEqual([
      expect.stringMatching(/^getPet GET .*no known caller\s*0/s),
      expect.stringMatching(/^listOrders GET .*no known caller\s*0/s),
    ]);
    expect(complaints).toEqual([]);
  });

  it('Now and Keys list dead secrets that are in use, and show no such section without them', async () => {
    const off = makeKey({ id: 'off', plan: 'free', disabled: true });
    const running = await startForTest({ keys: [calm.entry, off.entry] });
    await send(running.api, calm.secret, 1);
    await send(running.api, 'nobody', 2);
    const { page, complaints } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/keys', 'tbody tr');
    expect(await page.$('.dead-secrets')).toBeNull();
    await send(running.api, off.secret, 3);
    for (const path of ['/', '/keys']) {
      await open(page, running, path, '.dead-secrets tbody tr');
      expect(await textOf(page, '.dead-secrets tbody tr')).toEqual([
        expect.stringMatching(/^off\s*[0-9a-f]{8}…\s*disabled\s*3\s*1\s*/),
        expect.stringMatching(/^unknown secrets\s*2\s*1\s*/),
      ]);
      expect([path, await axeFindings(page)]).toEqual([path, []]);
    }
    expect(complaints).toEqual([]);
  });

  it('Operations counts a 501 for a client’s own method, and does not show it in red', {
    tags: 'full',
  }, async () => {
    const running = await startForTest();
    const headers = { authorization: `Bearer ${calm.secret}` };
    expect((await fetch(`${running.api}/pets`, { method: 'BREW', headers })).status).toBe(501);
    const { page } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/operations', 'tbody td i');
    const shown = await page.$$eval('tbody tr:has(i) td[data-label="5xx"]', (cells) =>
      cells.map(({ textContent, className }) => [textContent, className.trim()]),
    );
    expect(shown).toEqual([['1', 'number']]);
  });

  it('Key explains the responses to the key, and shows its windows and requests', async () => {
    const page = await tab.show('/keys/globex', '.why p');
    expect(await firstText(page, '.why p')).toMatch(/^globex \(free\) is banned until .*refused/);
    expect(await textOf(page, '.window.long .name')).toEqual(['minute', 'day']);
    expect((await textOf(page, '.window.long .amount'))[1]).toBe('60 of 1,000');
    expect(await textOf(page, 'section:nth-of-type(1) tbody tr')).toContainEqual(
      expect.stringMatching(/listPets\s*170/),
    );
  });

  it('shows names that look like markup as text', async () => {
    let attacks = 0;
    await tab.page.exposeFunction('attacked', () => {
      attacks += 1;
    });
    const page = await tab.show(`/keys?q=${encodeURIComponent(attack)}`, 'tbody tr');
    expect(await firstText(page, 'td.id')).toBe(`${hostile.entry.id} ${attack}`);
    await page.locator('td.id a').click();
    await page.waitForSelector('.why p');
    expect(page.url()).toBe(`${shared.origin}/keys/a%2Bb%40c%3Ad`);
    expect(await firstText(page, 'h1')).toBe(hostile.entry.id);
    expect(await page.$$('[onerror], td b, h1 i')).toEqual([]);
    expect(attacks).toBe(0);
  });

  it('restores the filters of the keys from a link, and the previous view with Back', async () => {
    const page = await tab.show('/keys?q=lo&state=banned&plan=free&sort=id', '.filters');
    const fields =
      "[...document.querySelectorAll('.filters input, .filters select')].map(({ value }) => value)";
    await page.waitForFunction(`document.querySelectorAll('.filters option[value=free]').length === 1`);
    expect(await page.evaluate(fields)).toEqual(['lo', 'banned', 'free', 'id']);
    await page.select('.filters [aria-label=State]', 'expired');
    await page.waitForSelector('.empty');
    expect(page.url()).toBe(`${shared.origin}/keys?q=lo&state=expired&plan=free&sort=id`);
    await page.goBack();
    await page.waitForSelector('tbody tr');
    expect(await page.evaluate(fields)).toEqual(['lo', 'banned', 'free', 'id']);
  });

  // The element to press, the resulting address, and the resulting selection. A link to this address has the same selection.
  it.each([
    ['/', '[role=group] button:nth-child(2)', '/?period=1h', '[role=group] [aria-pressed=true]', '1 h'],
    [
      '/keys/acme',
      '[role=group] button:nth-child(2)',
      '/keys/acme?period=24h',
      '[role=group] [aria-pressed=true]',
      '24 h',
    ],
    ['/plans', 'tr:nth-child(2) a', '/plans?plan=pro', 'a[aria-current=true]', 'pro'],
    [
      '/operations',
      'tr:nth-child(2) a',
      '/operations?operation=listPets',
      'a[aria-current=true]',
      'listPets',
    ],
  ])('at %s keeps a choice in the address, which restores it', async (path, control, after, chosen, text) => {
    const page = await tab.show(path, control);
    await page.locator(control).click();
    await expect.poll(() => page.url()).toBe(`${shared.origin}${after}`);
    await expect.poll(() => firstText(page, chosen)).toBe(text);
    await tab.show(after, chosen);
    expect(await firstText(page, chosen)).toBe(text);
  });

  it('shows all times in UTC, also in a browser of another zone', async () => {
    const { page } = await watchedPage(browser, shared.origin, 1280);
    await page.emulateTimezone('America/New_York');
    await page.evaluateOnNewDocument(`{
      const { fillText } = CanvasRenderingContext2D.prototype;
      globalThis.drawn = [];
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        drawn.push(text);
        return fillText.call(this, text, ...place);
      };
    }`);
    const nearHours = [-2, -1, 0, 1].map((hours) => {
      const near = new Date(Date.now() + hours * 3_600_000);
      return near.toISOString().slice(11, 13);
    });
    const expectUtcCharts = async () => {
      await page.waitForSelector('figcaption .at');
      const captions = await page.$$eval('figcaption .at', (all) =>
        all.map((at) => [at.textContent, at.getAttribute('title')] as const),
      );
      for (const [text, title] of captions) expect(title).toContain(`${text?.slice(-5)}:00 UTC`);
      const drawn = (await page.evaluate('drawn')) as string[];
      const onAxis = drawn.filter((text) => /^\d\d:\d\d\b/.test(text));
      expect(onAxis).not.toEqual([]);
      expect(nearHours).toEqual(expect.arrayContaining(onAxis.map((text) => text.slice(0, 2))));
      expect(drawn).toContainEqual(expect.stringMatching(/ UTC$/));
    };
    await open(page, shared, '/?period=1h', '.rows li .bad');
    await expectUtcCharts();
    expect(await firstText(page, 'header.top')).toContain('UTC');
    const headers = { authorization: `Bearer ${token}` };
    const { ban } = await (await fetch(`${shared.origin}/api/v1/keys/globex`, { headers })).json();
    const untilTime = new Date(ban.untilMs).toISOString().slice(11, 19);
    expect((await textOf(page, '.rows li')).find((line) => line.startsWith('globex'))).toContain(untilTime);
    await open(page, shared, '/keys/acme?period=1h', '.two + .section td time');
    await expectUtcCharts();
    const minutes = await page.$$eval('.two + .section td time', (all) =>
      all.map((time) => [time.textContent?.slice(-5), time.getAttribute('datetime')?.slice(11, 16)] as const),
    );
    for (const [text, inUtc] of minutes) expect(text).toBe(inUtc);
  });

  it('zooms the chart of a key when dragged, and keeps the zoom in the address', {
    tags: 'full',
  }, async () => {
    const { page } = await watchedPage(browser, shared.origin, 1280);
    await open(page, shared, '/keys/acme?period=1h', '.chart canvas');
    const box = await (await page.waitForSelector('.u-over'))?.boundingBox();
    if (!box) throw new Error('the chart has no place');
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction("location.search.startsWith('?from=')");
    const query = new URL(page.url()).searchParams;
    const hours = (Date.parse(query.get('to') ?? '') - Date.parse(query.get('from') ?? '')) / 3_600_000;
    expect(hours).toBeGreaterThan(0.2);
    expect(hours).toBeLessThan(0.3);
    await page.reload();
    await page.waitForSelector('[role=group] [aria-pressed=false]');
    expect(await textOf(page, '[role=group] [aria-pressed=true]')).toEqual([]);
  });

  it('lets the keyboard reach every page and every row: `/`, Esc, g and a letter, arrows, Enter', async () => {
    const page = await tab.show('/', '.figures');
    const focused = () => page.evaluate('document.activeElement.textContent');
    const isSearching = () => page.evaluate("document.activeElement.id === 'search'");
    // The page moves the focus to its beginning after it is drawn.
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 50)))');
    await page.keyboard.press('/');
    expect(await isSearching()).toBe(true);
    // A letter typed in a field is text, not a shortcut.
    await page.keyboard.type('gk');
    await page.keyboard.press('Escape');
    expect([await isSearching(), new URL(page.url()).pathname]).toEqual([false, '/']);
    for (const [letter, path] of [
      ['p', '/plans'],
      ['o', '/operations'],
      ['u', '/upstreams'],
      ['c', '/changes'],
      ['k', '/keys'],
      ['n', '/'],
      ['k', '/keys'],
    ] as const) {
      // The test presses the second key without a pause, because the page waits only 1.5 s for it.
      await Promise.all([page.keyboard.press('g'), page.keyboard.press(letter)]);
      await expect.poll(() => new URL(page.url()).pathname).toBe(path);
    }
    await page.waitForSelector('tbody tr');
    const ids = await textOf(page, 'td.id a');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe(ids[1]);
    await page.keyboard.press('ArrowUp');
    expect(await focused()).toBe(ids[0]);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.why p');
    expect(await firstText(page, 'h1')).toBe(ids[0]);
    await page.keyboard.press('/');
    await page.keyboard.type('acm');
    await expect
      .poll(() => page.$$eval('#suggested option', (options) => options.map(({ value }) => value)))
      .toContain('acme');
    await page.keyboard.type('e');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toBe('/keys/acme');
  });

  it('lists the keyboard shortcuts after `?`, and closes the list after Esc', { tags: 'full' }, async () => {
    const { page } = await watchedPage(browser, shared.origin, 390);
    await open(page, shared, '/', '.figures');
    await page.keyboard.type('?');
    await page.waitForSelector('dialog[open]');
    const shown = await textOf(page, 'dialog[open] tr');
    for (const row of ['/find a key', 'g popen Plans', '?show this list']) expect(shown).toContain(row);
    expect(await axeFindings(page)).toEqual([]);
    const folder = process.env.SCREENSHOTS;
    if (folder) await page.screenshot({ path: `${folder}/shortcuts.png` });
    await page.keyboard.press('Escape');
    await page.waitForFunction("document.querySelector('dialog') === null");
  });

  it('keeps a chosen theme', { tags: 'full' }, async () => {
    const { page } = await watchedPage(browser, shared.origin, 1280);
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
    await open(page, shared, '/keys', 'tbody tr');
    await page.locator('button.theme').click();
    await page.reload();
    await page.waitForSelector('tbody tr');
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(16, 21, 27)');
  });
});

describe('figures that change', () => {
  it('extend the charts with the first requests, even if nothing was recorded before', {
    tags: 'full',
  }, async () => {
    const running = await startForTest();
    const { page } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/', '.chart .note');
    await expect.poll(() => textOf(page, '.chart .note')).toContain('No requests in this period.');
    // Like the loop that `npm start` prints, this loop sends requests one after the other until the minute's limit is exhausted.
    await send(running.api, limited.secret, 61);
    await page.waitForFunction(
      "document.querySelector('.chart .note') === null && !document.querySelector('.legend b').textContent.startsWith('0 ')",
    );
    await expect.poll(() => firstText(page, '.rows li')).toContain('all 60 of this minute used');
  });

  it('keep the order of a list under the pointer, and sort it when the pointer leaves', {
    tags: 'full',
  }, async () => {
    const { page } = await watchedPage(browser, shared.origin, 1280);
    await open(page, shared, '/keys', 'tbody tr');
    const ids = () => textOf(page, 'td.id a');
    const before = await ids();
    const last = before.at(-1) ?? '';
    await page.hover('tbody tr:nth-child(2)');
    // Until now, this key has the fewest refusals. The next requests give this key the most refusals.
    const { secret } = keysById.get(last) ?? {};
    if (secret === undefined) throw new Error('it is one of ours');
    await send(shared.api, secret, 1_300);
    await askAgain(page, '/keys?');
    expect(await ids()).toEqual(before);
    await page.mouse.move(0, 0);
    await expect.poll(ids).not.toEqual(before);
    expect((await ids())[0]).toBe(last);
  });

  it('are grey with a notice while the gateway is away, and return after its restart', {
    tags: 'full',
  }, async () => {
    const port = await freePort();
    const admin = { host: '127.0.0.1', port, tokens: [entry] };
    const first = await start({ admin });
    const { page } = await watchedPage(browser, first.origin, 1280);
    await open(page, first, '/', '.verdict .well');
    await first.gateway.drain({ graceMs: 0 });
    await page.waitForSelector('.verdict .bad');
    expect(await firstText(page, '.verdict .bad')).toMatch(
      /^The gateway does not respond\. The figures are from \d\d:\d\d:\d\d\. This page keeps retrying\.$/,
    );
    await page.waitForSelector('.stale .figures');
    expect(await firstText(page, '.facts')).toMatch(/\d s old/);
    await startForTest({ admin });
    await page.waitForSelector('.verdict .well');
    await page.waitForFunction("document.querySelector('.stale') === null");
  });
});

describe('a fleet', () => {
  it('with a different configuration on one process names that process', { tags: 'full' }, async () => {
    const overrides = { redis: { url: redisUrl(), prefix: freshPrefix() } };
    const version = '4576ad000000';
    const [one] = await Promise.all([
      startForTest(overrides, { version }),
      startForTest(overrides, { version }),
      startForTest(overrides, { version: '0ld000000000' }),
    ]);
    const { page } = await watchedPage(browser, one.origin, 1280);
    await open(page, one, '/', '.verdict .near');
    await expect
      .poll(() => firstText(page, '.verdict .near'))
      .toMatch(
        /^1 of 3 processes has another configuration than 4576ad: .* has 0ld000\. Since \d\d:\d\d:\d\d, \d+ s\.$/,
      );
    await expect.poll(() => firstText(page, '.facts')).toMatch(/3 processes\s*, 1 with another config/);
  });

  it('without Redis states since when, and what this means', { tags: 'full' }, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const admin = { host: '127.0.0.1', port: 0, tokens: [{ ...entry, may: 'write' }] };
    const running = await startForTest({ redis: { url: redis.url }, admin });
    const { page } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/', '.verdict .well');
    await redis.kill();
    await page.waitForSelector('.verdict .bad');
    expect(await firstText(page, '.verdict .bad')).toMatch(
      /^Redis is away \(.+\): limits are counted by each process on its own, and only this gateway is known here\. Since \d\d:\d\d:\d\d, \d+ s\.$/,
    );
    expect(await firstText(page, '.facts')).toContain('Redis away since');
    await open(page, running, '/upstreams', '.upstreams .muted');
    await expect
      .poll(() => textOf(page, '.upstreams .muted'))
      .toContainEqual(
        expect.stringMatching(/^This gateway knows of no failure of the upstream, and Redis is away\.$/),
      );
    await open(page, running, '/?period=7d&compare=1', '.totals');
    await expect
      .poll(() => firstText(page, '.totals'))
      .toMatch(
        /^At least [\d,]+ requests in this period\. They cannot be compared with the week before while Redis is away\. This gateway counts since .* UTC, so the shaded part and the beginning of the bar next to it are not known\.$/,
      );
    await open(page, running, '/keys/acme', '.actions button');
    await page.locator('.actions button ::-p-text(Ban…)').click();
    await expect
      .poll(() => firstText(page, 'dialog .near'))
      .toMatch(
        /^Redis has been away since .*, and changes are only in Redis\. The gateway refuses them until Redis replies\.$/,
      );
    await redis.restart();
    await page.waitForSelector('dialog:not(:has(.near))');
    await open(page, running, '/', '.verdict .well');
  });

  it('with 10,000 keys shows them in pages, and without keys states how to make one', {
    tags: 'full',
  }, async () => {
    const many = Array.from(
      { length: 10_000 },
      (_, number) => makeKey({ id: `key-${String(number).padStart(5, '0')}` }).entry,
    );
    const running = await startForTest({ keys: many });
    const { page } = await watchedPage(browser, running.origin, 1280);
    await open(page, running, '/keys', 'tbody tr');
    expect(await textOf(page, 'td.id a')).toHaveLength(50);
    await page.$$eval('.paging button', ([, next]) => (next as unknown as { click(): void }).click());
    await page.waitForFunction("document.querySelector('td.id a')?.textContent === 'key-00050'");
    const empty = await startForTest({ keys: [] });
    await open(page, empty, '/keys', '.empty code');
    expect(await firstText(page, '.empty code')).toContain('keys create');
  });
});

/** This test ends the browser of the other tests, because the browser writes its files when it ends. */
it('the token is sent only in Authorization to its own origin; the browser keeps it in the storage of the tab and in no other file', async () => {
  const { page } = tab;
  await tab.show('/keys?sort=id', 'tbody tr');
  const withToken = sent.filter((request) =>
    JSON.stringify([request.url(), request.headers()]).includes(token),
  );
  expect(withToken.length).toBeGreaterThan(1);
  for (const request of withToken) {
    const { authorization, ...others } = request.headers();
    expect(authorization).toBe(`Bearer ${token}`);
    expect(request.url()).toMatch(`${shared.origin}/api/v1/`);
    expect(JSON.stringify([request.url(), others, request.postData()])).not.toContain(token);
  }
  expect(await page.evaluate('[{ ...localStorage }, { ...sessionStorage }, document.cookie]')).toEqual([
    {},
    { token },
    '',
  ]);
  expect(await page.content()).not.toContain(token);
  await browser.close();
  expect(await filesWith(profile, token)).toEqual(['Session Storage']);
});

it('the whole browser, which has a history and saves forms, keeps the token in no other file either', {
  tags: 'full',
}, async () => {
  const userDataDir = await mkdtemp(join(tmpdir(), 'tollgate-browser-'));
  onTestFinished(() => rm(userDataDir, { recursive: true, force: true }));
  const whole = await startBrowser({ userDataDir, isWhole: true });
  onTestFinished(() => whole.close());
  const { show } = await openTab(whole, shared.origin, token);
  await show('/keys?sort=id', 'tbody tr');
  await whole.close();
  expect(await filesWith(userDataDir, `${shared.origin}/keys?sort=id`)).toContain('History');
  expect(await filesWith(userDataDir, token)).toEqual(['Session Storage']);
});

/**
 * Returns the name of each file in a browser's profile whose content includes the text, in UTF-8 or UTF-16. File names in `Session
 * Storage` vary, so the result contains the name of this folder and not the names of its files.
 */
async function filesWith(profile: string, text: string): Promise<readonly string[]> {
  const files = await readdir(profile, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const file of files.filter((file) => file.isFile())) {
    const content = await readFile(join(file.parentPath, file.name));
    if (!content.includes(text) && !content.includes(Buffer.from(text, 'utf16le'))) continue;
    const folder = basename(file.parentPath);
    found.push(folder === 'Session Storage' ? folder : file.name);
  }
  return [...new Set(found)];
}
