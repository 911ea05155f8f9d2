import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Browser, HTTPRequest, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { Gateway } from '../../gateway/server/gateway.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import {
  axeFindings,
  openTab,
  openWithToken,
  startBrowser,
  type Tab,
  watchedPage,
} from '../support/browser.ts';
import { createGateway } from '../support/create-gateway.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey } from '../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The tests press the buttons on the page of a key in a browser. Two gateways share a Redis, and the first gateway serves the page. */
let browser: Browser;
/** The browser tab in which the pages use a write token. */
let tab: Tab;
let backend: RecordingBackend;
let folder: string;
const gateways: { readonly gateway: Gateway; readonly port: number; readonly adminPort: number }[] = [];

const writer = makeToken('write', 'alice');
const reader = makeToken('read', 'eve');
const written = makeKey({ id: 'globex', plan: 'free' });
const disabled = makeKey({ id: 'soylent', plan: 'free' });
const inDirectory = ['acme', 'initech', 'hooli', 'umbrella', 'al', 'wonka', 'tyrell', 'oscorp'];
const longPlan = 'p'.repeat(64);
const secrets = new Map<string, string>();

const api = (method: string, path: string, json?: object) =>
  askAdmin(gateways[0]?.adminPort ?? 0, `/api/v1${path}`, {
    method,
    token: writer.token,
    ...(json && { json }),
  });

/** Sends a request to the gateway that does not serve the page. @returns the status */
async function call(secret: string | undefined, path = '/pets'): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`http://127.0.0.1:${gateways[1]?.port}/v1${path}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

beforeAll(async () => {
  [browser, backend, folder] = await Promise.all([
    startBrowser(),
    startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('[]')) }),
    mkdtemp(join(tmpdir(), 'tollgate-')),
  ]);
  const file = join(folder, 'keys.yaml');
  await writeFile(file, stringify([written.entry, { ...disabled.entry, disabled: true }]));
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const windowsMs = freshWindows(Date.now());
  for (let index = 0; index < 2; index++) {
    const gateway = createGateway({
      settings: await settingsOf({
        upstream: { url: backend.url },
        plans: { free: { perMinute: 5, perDay: 100 }, [longPlan]: { perMinute: 5, perHour: 9 } },
        keys: { file, directory: true },
        redis,
        bans: { after: 10, for: '1h' },
        admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, reader.entry] },
      }),
      log: { logger: pino({ level: 'silent' }), access: () => {} },
      bounds: tunedBounds({ ...patientGateway, presenceExpiryMs: 60_000, windowsMs }),
    });
    const { listen, admin } = await gateway.start();
    gateways.push({ gateway, port: listen.port, adminPort: admin.port });
  }
  for (const id of inDirectory) {
    // The gateway may still be connecting to Redis.
    await until(`${id} is issued`, async () => {
      const { status, body } = await api('POST', '/keys', { id, plan: 'free' });
      if (status === 201) secrets.set(id, body.secret);
      return status === 201;
    });
  }
  await until('each gateway knows of the other', async () => {
    const { body } = await api('GET', '/state');
    return body.processes.length === 2;
  });
  tab = await openTab(browser, `http://127.0.0.1:${gateways[0]?.adminPort}`, writer.token);
});
afterEach(() => {
  expect(tab.complaints.splice(0)).toEqual([]);
});
afterAll(async () => {
  await Promise.all(gateways.map(({ gateway }) => gateway.drain({ graceMs: 0 })));
  await Promise.all([browser.close(), backend.close(), rm(folder, { recursive: true })]);
});

/** The page of a key, in the tab that all tests share. */
const showKey = (id: string, width?: number) => tab.show(`/keys/${id}`, '.why p', width);

/** The page of a key in a tab of its own. */
async function openKey(id: string, { width = 1280, token = writer.token } = {}) {
  const origin = `http://127.0.0.1:${gateways[0]?.adminPort}`;
  const { page, complaints } = await watchedPage(browser, origin, width);
  await openWithToken(page, `${origin}/keys/${id}`, token);
  await page.waitForSelector('.why p');
  return { page, complaints, origin };
}

const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim() ?? ''));
const firstText = async (page: Page, selector: string) => (await textOf(page, selector))[0] ?? '';

/** Opens the dialog of a button and checks the dialog. On a narrow page, axe also checks the dialog. */
async function press(page: Page, button: string): Promise<void> {
  await page.locator(`.actions button ::-p-text(${button})`).click();
  await page.waitForSelector('dialog[open]');
  if (page.viewport()?.width === 390) expect([button, await axeFindings(page)]).toEqual([button, []]);
  const wide =
    'document.documentElement.scrollWidth <= innerWidth && document.querySelector("dialog").scrollWidth <= document.querySelector("dialog").clientWidth';
  // The browser may not have drawn the new width yet.
  await expect.poll(() => page.evaluate(wide), { message: button }).toBe(true);
}

/** Confirms the dialog, and returns the result that the page then shows. */
async function confirm(page: Page): Promise<string> {
  await page.locator('dialog .main').click();
  await page.waitForFunction("document.querySelector('dialog') === null");
  return firstText(page, '.result');
}

/** The newest change and the newest event, as the pages show them. */
async function told(): Promise<readonly string[]> {
  const page = await tab.show('/changes', '.changes .what');
  const change = await firstText(page, '.changes .what');
  await tab.show('/events', '.events .what');
  return [change, await firstText(page, '.events .what')];
}

for (const width of [1280, 390])
  describe(`the page of a key at ${width} px`, { tags: width === 390 ? ['full'] : [] }, () => {
    it('grants a higher limit, and ends the grant', async () => {
      const page = await showKey('initech', width);
      await press(page, 'Grant more');
      expect(await firstText(page, 'dialog p')).toContain('within a second, on 2 processes');
      await page.type('#grant-minute', '77');
      expect(await confirm(page)).toMatch(
        /^initech has 77 a minute until .*UTC\. This applies on 2 processes\.$/,
      );
      await page.waitForFunction(
        "document.querySelector('.ban').textContent.includes('granted 77 a minute')",
      );
      await expect.poll(() => firstText(page, '.window.long .amount')).toMatch(/ of 77$/);
      expect(await told()).toEqual([
        expect.stringMatching(/^alice granted initech 77 a minute until .*limits 77 a minute/s),
        expect.stringMatching(/^alice granted initech 77 a minute until/),
      ]);
      await showKey('initech', width);
      await press(page, 'End the grant');
      expect(await confirm(page)).toMatch(
        /^The grant of initech has ended\. Its own limits apply\. This applies on 2/,
      );
      await page.waitForFunction("!document.querySelector('.ban').textContent.includes('granted')");
    });

    it('starts a grant at the chosen instant', { tags: 'full' }, async () => {
      const page = await showKey('initech', width);
      await press(page, 'Grant more');
      await page.type('#grant-minute', '78');
      const beginning = new Date(Math.ceil(Date.now() / 60_000) * 60_000 + 3_600_000);
      // The field contains UTC, also in a browser of another zone.
      await page.emulateTimezone('America/New_York');
      const value = beginning.toISOString().slice(0, 16);
      await page.evaluate(`document.querySelector('#from').value = ${JSON.stringify(value)}`);
      await page.select('#grant-span', '6h');
      expect(await confirm(page)).toMatch(/^initech gets 78 a minute from .* until .*UTC\./);
      const { body } = await api('GET', '/keys/initech');
      const fromMs = beginning.getTime();
      expect(body.grant).toEqual({ limits: { perMinute: 78 }, fromMs, untilMs: fromMs + 6 * 3_600_000 });
      await press(page, 'End the grant');
      await confirm(page);
      await page.emulateTimezone();
    });

    it('rotates the key: the new secret is shown once and stored nowhere', async () => {
      const page = await showKey('hooli', width);
      const old = secrets.get('hooli');
      expect(await call(old)).toBe(200);
      await press(page, 'Rotate');
      await page.select('#overlap', '0s');
      await page.locator('dialog .main').click();
      await page.waitForSelector('dialog .secret');
      expect(await axeFindings(page)).toEqual([]);
      const secret = await firstText(page, 'dialog .secret');
      expect([await call(secret), await call(old)]).toEqual([200, 401]);
      secrets.set('hooli', secret);
      await page.keyboard.press('Escape');
      await page.waitForFunction("document.querySelector('dialog') === null");
      expect(await firstText(page, '.result')).toBe(
        'hooli has a new secret; the old secrets have ended. This applies on 2 processes.',
      );
      const kept = await page.evaluate(
        'JSON.stringify([document.documentElement.outerHTML, location.href, history.state, { ...localStorage }, { ...sessionStorage }, document.cookie])',
      );
      expect(kept).not.toContain(secret);
      const table = await textOf(page, '.two section:nth-of-type(2) thead th');
      expect(table).toEqual(['SHA-256', 'Created', 'Last used', 'Refused', 'Ends']);
      await expect
        .poll(() => textOf(page, '.two section:nth-of-type(2) tbody tr'))
        .toContainEqual(expect.stringMatching(/ended/));
      expect(await told()).toEqual([
        expect.stringMatching(/^alice rotated the secret of hooli\b.*secret [0-9a-f]{8}/s),
        expect.stringMatching(/^alice rotated the secret of hooli\b/),
      ]);
    });

    it('revokes the key after its id was typed, and restores it', async () => {
      const page = await showKey('umbrella', width);
      await press(page, 'Revoke');
      const isDisabled = () => page.$eval('dialog .main', (button) => button.matches(':disabled'));
      await page.type('#typed', 'umbrell');
      expect(await isDisabled()).toBe(true);
      await page.keyboard.press('Enter');
      expect(await call(secrets.get('umbrella'))).toBe(200);
      await page.type('#typed', 'a');
      expect(await isDisabled()).toBe(false);
      expect(await confirm(page)).toBe(
        'umbrella is revoked. Its requests get 401. This applies on 2 processes.',
      );
      expect(await call(secrets.get('umbrella'))).toBe(401);
      await page.waitForFunction("document.querySelector('.heading .state').textContent === 'disabled'");
      // The page shows the age of the result, because another operator may have undone the change in the meantime.
      expect(await firstText(page, '.result + .muted')).toMatch(/^Done (now|\d+ s ago)/);
      await press(page, 'Restore');
      expect(await firstText(page, 'dialog p')).toContain('work again within a second, on 2 processes');
      expect(await confirm(page)).toBe('umbrella is restored. This applies on 2 processes.');
      await expect.poll(() => call(secrets.get('umbrella'))).toBe(200);
    });
  });

it('a button lifts the ban of a key in a file, whose secrets can be edited only in the file', async () => {
  for (let request = 0; request < 20; request++) await call(written.secret);
  const page = await showKey('globex');
  await page.waitForFunction("document.querySelector('.heading .state').textContent === 'banned'");
  expect(await textOf(page, '.actions button')).toEqual(['Lift the ban…', 'Grant more…']);
  expect(await firstText(page, '.heading p')).toMatch(/keys\.yaml:\d+/);
  expect(await firstText(page, '.two section:nth-of-type(2) > div')).toContain('defined in a file');
  await press(page, 'Lift the ban');
  expect(await firstText(page, 'dialog p')).toContain(
    'The ban of globex ends within a second, on 2 processes.',
  );
  expect(await confirm(page)).toBe('The ban of globex is lifted. This applies on 2 processes.');
  await page.waitForFunction("document.querySelector('.heading .state').textContent !== 'banned'");
  expect(await textOf(page, '.actions button')).toEqual(['Ban…', 'Grant more…']);
  expect(await told()).toContainEqual(expect.stringMatching(/^alice lifted the ban of globex\./));
});

it('a button shows the command that restores a key of a file', async () => {
  const page = await showKey('soylent');
  expect(await textOf(page, '.actions button')).toEqual(['Restore…']);
  await press(page, 'Restore');
  expect(await firstText(page, 'dialog code')).toBe('tollgate keys restore --ids soylent');
  await page.keyboard.press('Escape');
});

it('the keyboard alone deletes a key, and Esc leaves the dialog and returns the focus', async () => {
  expect(await call(secrets.get('acme'))).toBe(200);
  const page = await showKey('acme');
  const focused = () => page.evaluate('document.activeElement.textContent');
  await (await page.waitForSelector('.actions button:last-child'))?.focus();
  expect(await focused()).toBe('Delete…');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForFunction("document.querySelector('dialog') === null");
  expect(await focused()).toBe('Delete…');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  // When the dialog opens, its first field has the focus.
  await page.keyboard.type('acme');
  await page.keyboard.press('Enter');
  await page.waitForFunction(
    "document.querySelector('.empty')?.textContent.includes('There is no key acme')",
  );
  // Another minute may have begun since the request.
  await expect
    .poll(() => firstText(page, '.result'))
    .toMatch(
      /^acme is deleted\. Its requests get 401\. A later key with this id inherits (1 used unit in this minute, )?1 used unit in this day\. This applies on 2 processes\.$/,
    );
  const paths: string[] = [];
  const note = (request: HTTPRequest) => paths.push(new URL(request.url()).pathname);
  page.on('request', note);
  await until('the page has requested the state for several seconds', () => {
    return paths.filter((path) => path.endsWith('/state')).length > 4;
  });
  page.off('request', note);
  expect(paths.filter((path) => path.includes('acme'))).toEqual([]);
  // The browser's console reports the 404 of a request that the page had sent before the deletion.
  expect(tab.complaints.splice(0).filter((text) => !text.includes('404'))).toEqual([]);
  expect(await call(secrets.get('acme'))).toBe(401);
  // The page may have refreshed its figures between the deletion and the response to the deletion.
  expect(tab.complaints.splice(0).filter((text) => !text.includes('status of 404'))).toEqual([]);
});

it('a refused change shows the message of the API, and the dialog stays open', { tags: 'full' }, async () => {
  const { page } = await openKey('initech');
  await press(page, 'Grant more');
  await page.locator('dialog .main').click();
  await page.waitForFunction("document.querySelector('dialog [role=alert]').textContent !== ''");
  expect(await firstText(page, 'dialog [role=alert]')).toContain('limits');
  expect(await firstText(page, '.result')).toBe('');
});

/** The text of the focused element. */
const focusOn = (page: Page) => page.evaluate("document.activeElement.textContent.replace('✕', '')");

it('Esc does not leave a rotation that is under way: its secret appears with the focus, and no shortcut leaves the page', {
  tags: 'full',
}, async () => {
  const { page, complaints } = await openKey('wonka');
  await page.setRequestInterception(true);
  const { promise: posted, resolve: onPosted } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  page.on('request', async (request) => {
    if (request.method() === 'POST') {
      onPosted();
      await released;
    }
    await request.continue();
  });
  await (await page.waitForSelector('.actions button ::-p-text(Rotate)'))?.focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  await (await page.waitForSelector('dialog .main'))?.focus();
  await page.keyboard.press('Enter');
  await posted;
  await page.waitForSelector('dialog[aria-busy=true]');
  expect(await focusOn(page)).toBe('Rotate');
  // The page can prevent only the first Esc from closing the dialog, so the test presses Esc several times.
  for (let press = 0; press < 3; press++) await page.keyboard.press('Escape');
  // While the dialog is closed, the focused element receives Esc.
  await page.evaluate(() => {
    document.querySelector('dialog')?.close();
    document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  });
  await page.waitForSelector('dialog[open]');
  await page.click('dialog .close');
  expect(await page.$$('dialog[open]')).toHaveLength(1);
  release();
  await page.waitForSelector('dialog .secret');
  const secret = await firstText(page, 'dialog .secret');
  await expect.poll(() => focusOn(page)).toBe(secret);
  expect(await call(secret)).toBe(200);
  await page.keyboard.type('gk');
  expect(await firstText(page, 'dialog .secret')).toBe(secret);
  await page.keyboard.press('Escape');
  await page.waitForFunction("document.querySelector('dialog') === null");
  expect(await focusOn(page)).toBe('Rotate…');
  expect(complaints).toEqual([]);
});

it('after a lost response the dialog states that the change may have been made, and keeps the focus', {
  tags: 'full',
}, async () => {
  const { page } = await openKey('tyrell');
  await page.setRequestInterception(true);
  page.on('request', async (request) => {
    if (request.method() !== 'POST') return request.continue();
    const body = request.postData() ?? null;
    await fetch(request.url(), { method: 'POST', headers: request.headers(), body });
    return request.abort('connectionreset');
  });
  await press(page, 'Rotate');
  await (await page.waitForSelector('dialog .main'))?.focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction("document.querySelector('dialog [role=alert]').textContent !== ''");
  expect(await firstText(page, 'dialog [role=alert]')).toContain('the change may have been made');
  expect(await focusOn(page)).toBe('Rotate');
});

it('the key of a change links to its page, even if the id is the beginning of the operator’s name', {
  tags: 'full',
}, async () => {
  await api('POST', '/keys/al/grant', {
    limits: { perMinute: 9 },
    fromAt: new Date(Date.now() + 1_800_000).toISOString(),
    untilAt: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const page = await showKey('al');
  await page.waitForFunction(
    "/granted 9 a minute from .* UTC, in .*, until .* UTC, in /.test(document.querySelector('.ban').textContent)",
  );
  const [change] = await told();
  expect(change).toMatch(/^alice granted al 9 a minute/);
  await tab.show('/changes', '.changes .what a');
  const before = "document.querySelector('.changes .what a').previousSibling?.textContent";
  expect(await page.evaluate(before)).toBe('alice granted ');
});

it.each([1280, 390])('Changes at %i px shows all changes', { tags: 'full' }, async (width) => {
  const { page, origin } = await openKey('al', { width });
  await page.goto(`${origin}/changes`);
  await page.waitForSelector('.changes li');
  const { body } = await api('GET', '/changes?limit=50');
  expect(body.changes.length).toBeGreaterThanOrEqual(inDirectory.length);
  const shown =
    "[...document.querySelectorAll('.changes li')].filter(({ offsetHeight }) => offsetHeight > 0).length";
  expect(await page.evaluate(shown)).toBe(body.changes.length);
});

it('Operations states once how soon an operation is removed', { tags: 'full' }, async () => {
  await call(secrets.get('al'), '/pets/1');
  const { page, origin } = await openKey('al');
  await page.goto(`${origin}/operations?operation=getPet`);
  // The test waits for two texts, because they come from different responses.
  await page.waitForSelector('[data-label=State] .state');
  await page.waitForFunction("document.querySelector('.trend .sentence')?.textContent.includes('removed')");
  const removed = /removed (in [\d,]+ days)/;
  const [row = ''] = await textOf(page, '[data-label=State]:has(.state)');
  expect(row).toMatch(removed);
  expect(removed.exec(await firstText(page, '.trend .sentence'))?.[1]).toBe(removed.exec(row)?.[1]);
});

/** Blocks later requests whose URL contains `part`. */
async function cutOff(page: Page, part: string): Promise<void> {
  await page.setRequestInterception(true);
  page.on('request', (request) =>
    request.url().includes(part) ? request.abort('connectionrefused') : request.continue(),
  );
}

it('the notice about stale figures covers no title of a narrow page', { tags: 'full' }, async () => {
  const { page } = await openKey('al', { width: 390 });
  await page.waitForSelector('.chart canvas');
  await cutOff(page, '/keys/al');
  await page.waitForFunction(
    "document.querySelectorAll('.section .age.with-reason:not(:empty)').length === 4",
  );
  const covered = `[...document.querySelectorAll('.section > header')].filter((header) => {
    const [title, age] = ['h2', '.age'].map((name) => header.querySelector(name).getBoundingClientRect());
    return age.left < title.right && age.right > title.left && age.top < title.bottom && age.bottom > title.top;
  }).map(({ textContent }) => textContent)`;
  expect(await page.evaluate(covered)).toEqual([]);
});

it('the end of a ban is visible on a narrow page, also when the figures are stale', {
  tags: 'full',
}, async () => {
  for (let request = 0; request < 20; request++) await call(secrets.get('oscorp'));
  const { page, origin } = await openKey('oscorp', { width: 390 });
  await page.goto(`${origin}/`);
  await page.waitForSelector('.rows a[href="/keys/oscorp"]');
  await cutOff(page, '/api/v1/keys?');
  await page.waitForFunction(
    "/ s old$/.test(document.querySelector('.rows li > .muted')?.textContent ?? '')",
  );
  const state = 'document.querySelector(\'.rows li:has([href="/keys/oscorp"]) .bad\')';
  expect(await page.evaluate(`${state}.textContent`)).toMatch(/^banned until .*\d\d:\d\d:\d\d$/);
  expect(await page.evaluate(`${state}.scrollWidth <= ${state}.clientWidth`)).toBe(true);
});

it('the axis of a chart of few requests shows each number once', { tags: 'full' }, async () => {
  const { page, origin } = await openKey('al');
  // After each response, the page clears the canvas of a chart and draws the chart again.
  await page.evaluateOnNewDocument(`
    window.drawn = [];
    const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...area) {
      window.drawn = [];
      return clearRect.apply(this, area);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
      window.drawn.push(text);
      return fillText.call(this, text, ...place);
    };`);
  await page.goto(`${origin}/keys/al`);
  const numbers = await page.waitForFunction(
    "window.drawn.includes('1') && window.drawn.filter((text) => /^[01]$/.test(text)).sort()",
  );
  expect(await numbers.jsonValue()).toEqual(['0', '1']);
});

it('neither the longest name of a plan nor a right-to-left name disturbs the text beside it', {
  tags: 'full',
}, async () => {
  await api('POST', '/keys', { id: 'turned', plan: 'free', name: 'abc \u202Eabc' });
  const { page, origin } = await openKey('turned', { width: 390 });
  // The text after the name must run from left to right, although the name contains a right-to-left override.
  const places = `(() => {
    const range = document.createRange();
    const text = [...document.querySelector('.heading p').childNodes].find(({ textContent }) => textContent.includes('free'));
    const at = (from) => { range.setStart(text, from); range.setEnd(text, from + 1); return range.getBoundingClientRect().left; };
    const start = text.textContent.indexOf('free');
    return at(start) < at(start + 3);
  })()`;
  expect(await page.evaluate(places)).toBe(true);
  await page.goto(`${origin}/keys`);
  await page.waitForSelector(`.filters option[value=${longPlan}]`);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
  await page.goto(`${origin}/plans?plan=${longPlan}`);
  await page.waitForSelector('.plans tbody tr');
  await page.waitForSelector('.what-if');
  expect(await textOf(page, '.plans tbody [data-label=Limits]')).toContain('5 a minute, 9 an hour');
  await page.waitForFunction(
    "document.querySelector('.what-if .empty')?.textContent.startsWith('No key of')",
  );
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
});

it('a leaked secret fits its table on a narrow page', { tags: 'full' }, async () => {
  const sha256 = 'ab'.repeat(32);
  const expiresAt = new Date(Date.now() - 50 * 60_000).toISOString();
  const imported = await api('POST', '/directory', {
    keys: [{ id: 'leaky', plan: 'free', secrets: [{ sha256, expiresAt }] }],
  });
  expect([imported.status, imported.body]).toMatchObject([200, { created: 1 }]);
  await api('POST', '/leaks', [{ sha256, url: `https://example.com/${'x'.repeat(400)}` }]);
  const { page } = await openKey('leaky', { width: 1000 });
  await page.waitForSelector('.leak');
  const isInside = `(() => {
    const section = document.querySelector('.leak').closest('section');
    const rightmost = Math.max(...[...section.querySelectorAll('td time')].map((one) => one.getBoundingClientRect().right));
    return rightmost <= section.getBoundingClientRect().right + 1;
  })()`;
  for (const width of [1000, 390]) {
    await page.setViewport({ width, height: 900 });
    expect([width, await page.evaluate(isInside)]).toEqual([width, true]);
  }
});

it('a right-to-left name leaves the old value of a change before the new value', {
  tags: 'full',
}, async () => {
  const { body } = await api('POST', '/keys', { id: 'swapped', plan: 'free', name: '\u202Eabc' });
  expect((await api('PATCH', `/keys/${body.id}`, { name: 'xyz' })).status).toBe(200);
  const [change] = await told();
  expect(change).toMatch(/^alice changed swapped: name\./);
  const page = await tab.show('/changes', '.changes .members');
  const left = (word: string) =>
    page.evaluate(`(() => {
      const texts = document.createTreeWalker(document.querySelector('.changes .members'), NodeFilter.SHOW_TEXT);
      while (!texts.nextNode()?.textContent.includes('${word}'));
      const range = document.createRange();
      const from = texts.currentNode.textContent.indexOf('${word}');
      range.setStart(texts.currentNode, from);
      range.setEnd(texts.currentNode, from + '${word}'.length);
      return range.getBoundingClientRect().left;
    })()`);
  expect(await left('abc')).toBeLessThan(Number(await left('xyz')));
});

it('moves the key to another plan now and from a date on', async () => {
  const page = await showKey('wonka');
  await press(page, 'Edit plan');
  await page.waitForFunction("document.querySelectorAll('#plan option').length > 2");
  await page.select('#plan', longPlan);
  expect(await confirm(page)).toBe(`wonka is on the plan ${longPlan}. This applies on 2 processes.`);
  await page.waitForFunction(`document.querySelector('.heading p').textContent.includes('${longPlan}')`);
  await press(page, 'Edit plan');
  await page.waitForFunction("document.querySelectorAll('#plan option').length > 2");
  await page.select('#plan', 'free');
  await page.$eval('#from', (field) => Object.assign(field, { value: '2099-01-01T00:00' }));
  expect(await confirm(page)).toMatch(/^wonka is on the plan free from .*2099.* This applies on 2/);
  const { body } = await api('GET', '/keys/wonka');
  expect(body).toMatchObject({ plan: longPlan, changes: [{ plan: 'free' }] });
  await page.waitForFunction(
    "document.querySelector('.why').textContent.includes('will be on the plan free:')",
  );
});

it('a read token gets no buttons for changes', async () => {
  const { page } = await openKey('initech', { token: reader.token });
  await page.waitForSelector('.chart canvas');
  expect(await page.$$('.actions, .actions button')).toEqual([]);
});
