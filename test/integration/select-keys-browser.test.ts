import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { Gateway } from '../../gateway/server/gateway.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { axeFindings, openWithToken, startBrowser, watchedPage } from '../support/browser.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The tests select rows on the page Keys in a browser: five keys of the directory, and one key of a file. */
let browser: Browser;
let backend: RecordingBackend;
let folder: string;
let gateway: Gateway;
let port: number;
let origin: string;

const writer = makeToken('write', 'alice');
const reader = makeToken('read', 'eve');
const inFile = makeKey({ id: 'globex', plan: 'free' });
/** The plan `minutely` has no limit a day. */
const planOf = { acme: 'free', hooli: 'free', initech: 'free', tyrell: 'free', wonka: 'minutely' };
const inDirectory = Object.keys(planOf);
const all = [...inDirectory, 'globex'];

const api = (method: string, path: string, json?: object) =>
  askAdmin(Number(new URL(origin).port), `/api/v1${path}`, {
    method,
    token: writer.token,
    ...(json && { json }),
  });

beforeAll(async () => {
  [browser, backend, folder] = await Promise.all([
    startBrowser(),
    startRecordingBackend({ react: (_request, socket) => socket.write(okResponse('[]')) }),
    mkdtemp(join(tmpdir(), 'tollgate-')),
  ]);
  const file = join(folder, 'keys.yaml');
  await writeFile(file, stringify([inFile.entry]));
  gateway = createGateway({
    settings: await settingsOf({
      upstream: { url: backend.url },
      plans: { free: { perMinute: 5, perDay: 100 }, minutely: { perMinute: 50 } },
      keys: { file, directory: true },
      redis: { url: redisUrl(), prefix: freshPrefix() },
      admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, reader.entry] },
    }),
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds(patientGateway),
  });
  const { listen, admin } = await gateway.start();
  port = listen.port;
  origin = `http://127.0.0.1:${admin.port}`;
});
/** Each test begins with five fresh keys, and without grants and bans. */
beforeEach(async () => {
  for (const [id, plan] of Object.entries(planOf)) {
    await api('DELETE', `/keys/${id}`);
    // The gateway may still be connecting to Redis.
    await until(`${id} is issued`, async () => (await api('POST', '/keys', { id, plan })).status === 201);
  }
  for (const id of all) await api('POST', `/keys/${id}/unban`);
  await api('DELETE', '/keys/globex/grant');
});
afterAll(async () => {
  await gateway.drain({ graceMs: 0 });
  await Promise.all([browser.close(), backend.close(), rm(folder, { recursive: true })]);
});

async function openKeys({ width = 1280, token = writer.token, query = '?sort=id' } = {}) {
  const { page, complaints } = await watchedPage(browser, origin, width);
  await openWithToken(page, `${origin}/keys${query}`, token);
  await page.waitForSelector('.keys tbody td.id a');
  return { page, complaints };
}

const box = (id: string) => `input[aria-label="Select ${id}"]`;
const selectAll = 'thead .box input';
const textsOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim() ?? ''));
const barText = async (page: Page) => (await textsOf(page, '.selection p'))[0];
const selectedIds = (page: Page) =>
  page.$$eval('tbody .box input:checked', (boxes) =>
    boxes.map((one) => one.getAttribute('aria-label')?.slice('Select '.length)),
  );

async function press(page: Page, button: string): Promise<void> {
  await page.locator(`.selection button ::-p-text(${button})`).click();
  await page.waitForSelector('dialog[open] form');
}

/** The options of the field come with a response. */
async function choosePlan(page: Page, plan: string): Promise<void> {
  await page.waitForFunction(
    `[...document.querySelectorAll('#plan option')].some(({ value }) => value === '${plan}')`,
  );
  await page.select('#plan', plan);
}

/** Confirms the dialog, and returns the lines of the summary. */
async function confirm(page: Page): Promise<readonly string[]> {
  await page.locator('dialog .main').click();
  await page.waitForSelector('dialog .summary');
  return textsOf(page, 'dialog .summary p');
}

async function closeDialog(page: Page): Promise<void> {
  await page.keyboard.press('Escape');
  await page.waitForFunction("document.querySelector('dialog') === null");
}

async function statusOf(secret: string): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers });
  await response.arrayBuffer();
  return response.status;
}

it('the keyboard alone revokes selected keys after their number was typed', async () => {
  const { page, complaints } = await openKeys();
  const focused = () => page.evaluate('document.activeElement.textContent');
  await page.focus(box('acme'));
  await page.keyboard.press('Space');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Space');
  expect(await selectedIds(page)).toEqual(['acme', 'hooli']);
  expect(await barText(page)).toBe('2 keys selected');
  await page.keyboard.down('Shift');
  for (let tabs = 0; tabs < 30 && (await focused()) !== 'Revoke…'; tabs++) await page.keyboard.press('Tab');
  await page.keyboard.up('Shift');
  expect(await focused()).toBe('Revoke…');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open] #typed');
  expect(await textsOf(page, 'dialog h2')).toEqual(['Revoke 2 keys']);
  expect(await textsOf(page, 'dialog p')).toEqual(expect.arrayContaining(['acme, hooli']));
  await page.keyboard.type('3');
  await page.keyboard.press('Enter');
  expect(await page.$('dialog .summary')).toBeNull();
  await page.keyboard.press('Backspace');
  await page.keyboard.type('2');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog .summary');
  expect(await textsOf(page, 'dialog .summary p')).toEqual(['2 keys revoked.', 'This applies on 1 process.']);
  await closeDialog(page);
  // The button that had the focus no longer exists.
  expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toMatch(/^Select all 6/);
  expect(await page.$('.selection')).toBeNull();
  const { body } = await api('GET', '/keys?state=disabled&sort=id');
  expect(body.keys.map(({ id }: { readonly id: string }) => id)).toEqual(['acme', 'hooli']);
  const { body: record } = await api('GET', '/changes?limit=2');
  const entries = record.changes.map(({ action, key }: Record<string, string>) => `${action} ${key}`);
  expect(entries.toSorted()).toEqual(['revoke acme', 'revoke hooli']);
  expect(complaints).toEqual([]);
});

it('a failed key does not stop the others, and stays selected', async () => {
  const { page } = await openKeys();
  await page.click(selectAll);
  expect(await barText(page)).toBe('6 keys selected');
  await press(page, 'Grant more');
  expect(await textsOf(page, 'dialog label')).toEqual([
    'Requests a minute (now 5 to 50)',
    'Requests a day (now 100)',
    expect.stringContaining('From'),
    'How long',
  ]);
  await page.type('#grant-day', '500');
  expect(await confirm(page)).toEqual([
    expect.stringMatching(/^5 keys have the grant: 500 a day until /),
    '1 key failed:',
    expect.stringMatching(/^wonka: .*`limits\.perDay` names a window in which wonka/),
    'The keys that failed stay selected, so you can try again.',
    'This applies on 1 process.',
  ]);
  await closeDialog(page);
  expect(await barText(page)).toBe('1 key selected');
  expect(await selectedIds(page)).toEqual(['wonka']);
  // One selected key has the same dialog as the page of the key.
  await press(page, 'End the grants');
  expect(await textsOf(page, 'dialog h2')).toEqual(['End the grant of wonka']);
  expect(await confirm(page)).toEqual(['wonka: had no grant.']);
  await closeDialog(page);
  const { body } = await api('GET', '/keys/globex');
  expect(body.grant.limits).toEqual({ perDay: 500 });
});

it('keys of files are left out of a change of the definition, with the command for them', async () => {
  await api('POST', '/keys/globex/ban', { untilAt: new Date(Date.now() + 3_600_000).toISOString() });
  const { page } = await openKeys();
  await page.click(box('globex'));
  await press(page, 'Revoke');
  expect(await textsOf(page, 'dialog form p')).toEqual([
    'This key is defined in a file, which this page does not edit. On the machine of the gateway: tollgate keys revoke --ids globex',
  ]);
  expect(await page.$('dialog .main')).toBeNull();
  await closeDialog(page);
  await page.click(box('acme'));
  await page.click(box('wonka'));
  await press(page, 'Revoke');
  expect(await textsOf(page, 'dialog h2')).toEqual(['Revoke 2 keys']);
  expect((await textsOf(page, 'dialog form p'))[1]).toBe(
    '1 of the 3 selected keys is defined in files and left out here. On the machine of the gateway: tollgate keys revoke --ids globex',
  );
  await closeDialog(page);
  await press(page, 'Edit plan');
  expect((await textsOf(page, 'dialog form p')).join(' ')).toMatch(
    /keys edit --ids globex --plan PLAN\. With --from DATE, .* With --withdraw in place of --plan, /,
  );
  await closeDialog(page);
  await press(page, 'Rotate');
  expect((await textsOf(page, 'dialog form p')).join(' ')).toMatch(
    /keys rotate --ids globex --out secrets\.csv\. .* --overlap 7d or --overlap DATE /,
  );
  await closeDialog(page);
  // Bans are not part of the definition.
  await press(page, 'Lift the bans');
  expect(await confirm(page)).toEqual([
    '1 key had their bans lifted.',
    '2 keys not banned.',
    'This applies on 1 process.',
  ]);
});

it('new secrets of many keys are shown once and can be downloaded, and closing without a download is asked', async () => {
  const { page, complaints } = await openKeys();
  const session = await page.createCDPSession();
  await session.send('Browser.setDownloadBehavior', {
    behavior: 'allow',
    downloadPath: folder,
    browserContextId: page.browserContext().id ?? '',
  });
  await page.click(selectAll);
  await press(page, 'Rotate');
  await page.select('#overlap', '0s');
  expect(await confirm(page)).toEqual([
    '5 keys rotated: the old secrets have ended.',
    'This applies on 1 process.',
  ]);
  expect(await axeFindings(page)).toEqual([]);
  const [shown = ''] = await textsOf(page, 'dialog .secret');
  const rows = shown.split('\n').map((row) => row.split(','));
  expect(rows.map(([id]) => id).toSorted()).toEqual([...inDirectory, 'id'].toSorted());
  expect(rows[0]).toEqual(['id', 'secret']);
  const statuses = await Promise.all(rows.slice(1).map(([, secret = '']) => statusOf(secret)));
  expect(statuses).toEqual([200, 200, 200, 200, 200]);
  // The browser would close the dialog with the second Esc.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.waitForFunction("document.querySelector('dialog [role=alert]').textContent !== ''");
  expect(await textsOf(page, 'dialog [role=alert]')).toEqual([
    'The secrets are not downloaded. After you close this dialog, nobody can read them again.',
  ]);
  await page.locator('dialog button ::-p-text(Download)').click();
  const file = join(folder, 'secrets.csv');
  await expect.poll(() => readFile(file, 'utf8').catch(() => '')).toBe(`${shown}\n`);
  await closeDialog(page);
  const kept = await page.evaluate(
    'JSON.stringify([document.documentElement.outerHTML, location.href, history.state, { ...localStorage }, { ...sessionStorage }])',
  );
  expect(rows.slice(1).filter(([, secret = '']) => String(kept).includes(secret))).toEqual([]);
  expect(complaints.filter((text) => !text.includes('blob:'))).toEqual([]);
});

/** A list that is drawn again in the meantime may have moved the row. */
const check = (page: Page, id: string) =>
  page.$eval(box(id), (field) => (field as unknown as { click(): void }).click());

it('moves selected keys to another plan now, and from a date on', async () => {
  const { page } = await openKeys();
  await check(page, 'acme');
  await check(page, 'hooli');
  await press(page, 'Edit plan');
  await choosePlan(page, 'minutely');
  expect(await confirm(page)).toEqual(['2 keys edited: plan minutely.', 'This applies on 1 process.']);
  await closeDialog(page);
  for (const plan of ['minutely', 'free']) {
    await check(page, 'acme');
    await check(page, 'tyrell');
    await press(page, 'Edit plan');
    await choosePlan(page, plan);
    const from = plan === 'free' ? '2099-02-01T00:00' : '2099-01-01T00:00';
    await page.$eval('#from', (field, value) => Object.assign(field, { value }), from);
    expect((await confirm(page))[0]).toContain(`2 keys edited: plan ${plan} from `);
    await closeDialog(page);
  }
  for (const [id, plan] of [
    ['acme', 'minutely'],
    ['tyrell', 'free'],
  ]) {
    const { body } = await api('GET', `/keys/${id}`);
    // A second change leaves the first one as it is.
    expect(body).toMatchObject({ plan, changes: [{ plan: 'minutely' }, { plan: 'free' }] });
  }
  expect((await api('GET', '/keys/hooli')).body.plan).toBe('minutely');
});

it('the other keys are not tried after the gateway did not answer for several', async () => {
  const { page } = await openKeys();
  await page.click(selectAll);
  await press(page, 'Ban');
  await page.setRequestInterception(true);
  page.on('request', (request) =>
    request.url().endsWith('/ban') ? request.abort('connectionrefused') : request.continue(),
  );
  expect(await confirm(page)).toEqual([
    '0 keys banned.',
    '6 keys failed:',
    expect.stringMatching(/^\w+(, \w+)+: There was no response, so the change may have been made\./),
    expect.stringMatching(/^\w+(, \w+)*: It was not tried/),
    'The keys that failed stay selected, so you can try again.',
  ]);
  await closeDialog(page);
  expect(await barText(page)).toBe('6 keys selected');
});

it.each([1280, 390])('at %i px the bar moves nothing, and axe finds no faults', async (width) => {
  const { page, complaints } = await openKeys({ width });
  // The width of the filter depends on the names of the plans.
  await page.waitForSelector('.filters option[value=minutely]');
  await page.waitForSelector('.keys .bar');
  // The lists below the keys have arrived.
  await page.waitForNetworkIdle();
  await page.evaluate(`
    window.moved = [];
    new PerformanceObserver((list) => window.moved.push(...list.getEntries().flatMap(({ sources }) => sources.map(({ node }) => node?.outerHTML?.slice(0, 200))))).observe({ type: 'layout-shift' });`);
  await page.click(box('acme'));
  await page.waitForSelector('.selection');
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  expect(await page.evaluate('window.moved')).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  // On a low page, the arrow key moves the focus to a row that the bar would hide.
  await page.setViewport({ width, height: 500 });
  await page.evaluate('scrollTo(0, 0)');
  await page.focus(box('acme'));
  for (let row = 0; row < 5; row++) await page.keyboard.press('ArrowDown');
  const isFree = `document.activeElement.matches('.box input') &&
    document.activeElement.getBoundingClientRect().bottom <= document.querySelector('.selection').getBoundingClientRect().top`;
  expect(await page.evaluate(isFree)).toBe(true);
  await page.setViewport({ width, height: 900 });
  for (const theme of ['light', 'dark']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    expect([theme, await axeFindings(page)]).toEqual([theme, []]);
  }
  await press(page, 'Edit plan');
  expect(await axeFindings(page)).toEqual([]);
  await closeDialog(page);
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Edit plan…');
  expect(complaints).toEqual([]);
});

it('the selection survives another order, and another filter and Esc clear it', async () => {
  const { page } = await openKeys();
  await page.click(box('acme'));
  await page.click(box('wonka'));
  await page.select('[aria-label=Sort]', '');
  // Rows keep their order while the pointer or the focus is in one of them.
  await page.mouse.move(5, 5);
  await page.focus('.filters input');
  for (let request = 0; request < 7; request++) await statusOf(inFile.secret);
  await page.waitForFunction("document.querySelector('tbody td.id a').textContent === 'globex'");
  expect((await selectedIds(page)).toSorted()).toEqual(['acme', 'wonka']);
  expect(await page.$eval(selectAll, (one) => one.matches(':indeterminate'))).toBe(true);
  // Esc in the search field only leaves the field.
  await page.keyboard.press('Escape');
  expect(await barText(page)).toBe('2 keys selected');
  await page.keyboard.press('Escape');
  await page.waitForFunction("document.querySelector('.selection') === null");
  await page.click(box('acme'));
  expect(await barText(page)).toBe('1 key selected');
  await page.mouse.move(5, 5);
  await page.focus('.filters input');
  await page.select('[aria-label=Plan]', 'minutely');
  await page.waitForFunction("document.querySelector('.selection') === null");
  await expect.poll(() => textsOf(page, 'tbody td.id a')).toEqual(['wonka']);
});

it('a read token gets no check boxes and no bar', async () => {
  const { page } = await openKeys({ token: reader.token });
  expect(await page.$$('input[type=checkbox], .selection, [aria-label="Selected keys"]')).toEqual([]);
});

it('a ban that was lifted is no longer an incident on the page Now', async () => {
  await api('POST', '/keys/globex/ban', { untilAt: new Date(Date.now() + 3_600_000).toISOString() });
  const { page } = await openKeys();
  await page.goto(`${origin}/`);
  const incidents = () => textsOf(page, '.happened li');
  const served = async () => statusOf(inFile.secret);
  await expect.poll(served).toBe(429);
  await expect.poll(incidents).toContainEqual(expect.stringContaining('globex (free) is banned'));
  await api('POST', '/keys/globex/unban');
  await expect.poll(served).toBe(200);
  await expect.poll(incidents).not.toContainEqual(expect.stringContaining('globex (free) is banned'));
});
