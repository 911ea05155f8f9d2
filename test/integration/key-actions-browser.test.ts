import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createGateway, type Gateway } from '../../gateway/gateway.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { axeFindings, startBrowser, watchedPage } from '../support/browser.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey } from '../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientGateway } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** The buttons of a key, pressed in a browser: of two gateways that share a Redis, one shows the page. */
let browser: Browser;
let backend: RecordingBackend;
let folder: string;
const gateways: { readonly gateway: Gateway; readonly port: number; readonly adminPort: number }[] = [];

const writer = makeToken('write', 'alice');
const reader = makeToken('read', 'eve');
const written = makeKey({ id: 'globex', plan: 'free' });
const inDirectory = ['acme', 'initech', 'hooli', 'umbrella'];
const secrets = new Map<string, string>();

const api = (method: string, path: string, json?: object) =>
  askAdmin(gateways[0]?.adminPort ?? 0, `/api/v1${path}`, {
    method,
    token: writer.token,
    ...(json && { json }),
  });

/** The status of a request, of the gateway that does not show the page. */
async function call(secret: string | undefined): Promise<number> {
  const headers = { authorization: `Bearer ${secret}` };
  const response = await fetch(`http://127.0.0.1:${gateways[1]?.port}/v1/pets`, { headers });
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
  await writeFile(file, stringify([written.entry]));
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const windowsMs = freshWindows(Date.now());
  for (let index = 0; index < 2; index++) {
    const gateway = createGateway({
      settings: await settingsOf({
        upstream: { url: backend.url },
        plans: { free: { perMinute: 5, perDay: 100 } },
        keys: { file, directory: true },
        redis,
        bans: { after: 10, for: '1h' },
        admin: { host: '127.0.0.1', port: 0, tokens: [writer.entry, reader.entry] },
      }),
      log: { logger: pino({ level: 'silent' }), access: () => {} },
      bounds: tunedBounds({ ...patientGateway, presenceExpiryMs: 60_000 }),
      windowsMs,
    });
    const { listen, admin } = await gateway.start();
    gateways.push({ gateway, port: listen.port, adminPort: admin.port });
  }
  for (const id of inDirectory) {
    // The connection to Redis may not be there yet.
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
}, 300_000);
afterAll(async () => {
  await Promise.all(gateways.map(({ gateway }) => gateway.drain({ graceMs: 0 })));
  await Promise.all([browser.close(), backend.close(), rm(folder, { recursive: true })]);
});

async function openKey(id: string, { width = 1280, token = writer.token } = {}) {
  const origin = `http://127.0.0.1:${gateways[0]?.adminPort}`;
  const { page, complaints } = await watchedPage(browser, origin, width);
  await page.goto(`${origin}/keys/${id}#token=${token}`);
  await page.waitForSelector('.why p');
  return { page, complaints, origin };
}

const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim() ?? ''));
const firstText = async (page: Page, selector: string) => (await textOf(page, selector))[0] ?? '';

/** Opens the dialog of a button, and looks at it. */
async function press(page: Page, button: string): Promise<void> {
  await page.locator(`.actions button ::-p-text(${button})`).click();
  await page.waitForSelector('dialog[open]');
  expect([button, await axeFindings(page)]).toEqual([button, []]);
  const wide =
    'document.documentElement.scrollWidth <= innerWidth && document.querySelector("dialog").scrollWidth <= document.querySelector("dialog").clientWidth';
  expect([button, await page.evaluate(wide)]).toEqual([button, true]);
}

/** What the page says when it was done, once the dialog is closed. */
async function confirm(page: Page): Promise<string> {
  await page.click('dialog .main');
  await page.waitForFunction("document.querySelector('dialog') === null");
  return firstText(page, '.result');
}

/** The newest change that the Changes page shows, and the newest thing that happened. */
async function told(page: Page, origin: string): Promise<readonly string[]> {
  await page.goto(`${origin}/changes`);
  await page.waitForSelector('.changes .what');
  const change = await firstText(page, '.changes .what');
  await page.goto(`${origin}/`);
  await page.waitForSelector('.happened .what');
  return [change, await firstText(page, '.happened .what')];
}

describe.each([1280, 390])('at %i px', (width) => {
  it('more is granted to a key, and the grant ended', async () => {
    const { page, complaints, origin } = await openKey('initech', { width });
    await press(page, 'Grant more');
    expect(await firstText(page, 'dialog p')).toContain('within a second, on 2 processes');
    await page.type('#grant-minute', '77');
    expect(await confirm(page)).toMatch(
      /^initech has 77 a minute until .*UTC\)\. This holds on 2 processes\.$/,
    );
    await page.waitForFunction("document.querySelector('.ban').textContent.includes('granted 77 a minute')");
    await expect.poll(() => firstText(page, '.window.long .amount')).toMatch(/ of 77$/);
    expect(await told(page, origin)).toEqual([
      expect.stringMatching(/^alice granted initech 77 a minute until .*limits 77 a minute/s),
      expect.stringMatching(/^alice granted initech 77 a minute until/),
    ]);
    await page.goto(`${origin}/keys/initech`);
    await page.waitForSelector('.why p');
    await press(page, 'End the grant');
    expect(await confirm(page)).toMatch(
      /^The grant of initech has ended: its own limits hold\. This holds on 2/,
    );
    await page.waitForFunction("!document.querySelector('.ban').textContent.includes('granted')");
    expect(await told(page, origin)).toEqual([
      expect.stringMatching(/^alice ended the grant of initech\..*limits was 77 a minute/s),
      'alice ended the grant of initech.',
    ]);
    expect(complaints).toEqual([]);
  });

  it('a key is rotated: the new secret is shown once, and stored nowhere', async () => {
    const { page, complaints, origin } = await openKey('hooli', { width });
    const old = secrets.get('hooli');
    expect(await call(old)).toBe(200);
    await press(page, 'Rotate');
    await page.select('#overlap', '0s');
    await page.click('dialog .main');
    await page.waitForSelector('dialog .secret');
    expect(await axeFindings(page)).toEqual([]);
    const secret = await firstText(page, 'dialog .secret');
    expect([await call(secret), await call(old)]).toEqual([200, 401]);
    secrets.set('hooli', secret);
    await page.keyboard.press('Escape');
    await page.waitForFunction("document.querySelector('dialog') === null");
    expect(await firstText(page, '.result')).toBe(
      'hooli has a new secret; the others have ended. This holds on 2 processes.',
    );
    const kept = await page.evaluate(
      'JSON.stringify([document.documentElement.outerHTML, location.href, history.state, { ...localStorage }, { ...sessionStorage }, document.cookie])',
    );
    expect(kept).not.toContain(secret);
    const table = await textOf(page, '.two section:nth-of-type(2) thead th');
    expect(table).toEqual(['SHA-256 begins with', 'Created', 'Last used', 'Ends']);
    await expect
      .poll(() => textOf(page, '.two section:nth-of-type(2) tbody tr'))
      .toContainEqual(expect.stringMatching(/ended/));
    expect(await told(page, origin)).toEqual([
      expect.stringMatching(/^alice rotated the secret of hooli\b.*secret [0-9a-f]{8}/s),
      expect.stringMatching(/^alice rotated the secret of hooli\b/),
    ]);
    expect(complaints).toEqual([]);
  });

  it('a key is revoked by whoever types its id, and restored', async () => {
    const { page, complaints, origin } = await openKey('umbrella', { width });
    await press(page, 'Revoke');
    const isDisabled = () => page.$eval('dialog .main', (button) => button.matches(':disabled'));
    await page.type('#typed', 'umbrell');
    expect(await isDisabled()).toBe(true);
    await page.keyboard.press('Enter');
    expect(await call(secrets.get('umbrella'))).toBe(200);
    await page.type('#typed', 'a');
    expect(await isDisabled()).toBe(false);
    expect(await confirm(page)).toBe(
      'umbrella is revoked: its requests are answered 401. This holds on 2 processes.',
    );
    expect(await call(secrets.get('umbrella'))).toBe(401);
    await page.waitForFunction("document.querySelector('.heading .state').textContent === 'disabled'");
    await press(page, 'Restore');
    expect(await firstText(page, 'dialog p')).toContain('work again within a second, on 2 processes');
    expect(await confirm(page)).toBe('umbrella is restored. This holds on 2 processes.');
    await expect.poll(() => call(secrets.get('umbrella'))).toBe(200);
    expect(await told(page, origin)).toEqual([
      expect.stringMatching(/^alice restored umbrella\./),
      'alice restored umbrella.',
    ]);
    expect(complaints).toEqual([]);
  });
});

it('a ban is lifted, of a key that is written in a file too: its secrets are edited there', async () => {
  for (let request = 0; request < 20; request++) await call(written.secret);
  const { page, complaints, origin } = await openKey('globex');
  await page.waitForFunction("document.querySelector('.heading .state').textContent === 'banned'");
  expect(await textOf(page, '.actions button')).toEqual(['Lift the ban…', 'Grant more…']);
  expect(await firstText(page, '.heading p')).toMatch(/keys\.yaml:\d+/);
  expect(await firstText(page, '.two section:nth-of-type(2) > div')).toContain('edited where it is written');
  await press(page, 'Lift the ban');
  expect(await firstText(page, 'dialog p')).toContain(
    'globex may call again within a second, on 2 processes.',
  );
  expect(await confirm(page)).toBe('The ban of globex is lifted. This holds on 2 processes.');
  await page.waitForFunction("document.querySelector('.heading .state').textContent !== 'banned'");
  expect(await textOf(page, '.actions button')).toEqual(['Grant more…']);
  expect(await told(page, origin)).toContainEqual(expect.stringMatching(/^alice lifted the ban of globex\./));
  expect(complaints).toEqual([]);
});

it('a key is deleted by the keyboard alone; Esc leaves the question, and the focus goes back', async () => {
  const { page, complaints } = await openKey('acme');
  const focused = () => page.evaluate('document.activeElement.textContent');
  await page.focus('.actions button:last-child');
  expect(await focused()).toBe('Delete…');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForFunction("document.querySelector('dialog') === null");
  expect(await focused()).toBe('Delete…');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  // The first field has the focus.
  await page.keyboard.type('acme');
  await page.keyboard.press('Enter');
  await page.waitForFunction(
    "document.querySelector('.empty')?.textContent.includes('There is no key acme')",
  );
  expect(await firstText(page, '.result')).toBe(
    'acme is deleted: its requests are answered 401. This holds on 2 processes.',
  );
  expect(await call(secrets.get('acme'))).toBe(401);
  expect(complaints).toEqual([]);
});

it('what the API refuses is said in its words, and the question stays', async () => {
  const { page } = await openKey('initech');
  await press(page, 'Grant more');
  await page.click('dialog .main');
  await page.waitForFunction("document.querySelector('dialog [role=alert]').textContent !== ''");
  expect(await firstText(page, 'dialog [role=alert]')).toContain('limits');
  expect(await firstText(page, '.result')).toBe('');
});

it('a token that may only read is offered nothing', async () => {
  const { page } = await openKey('initech', { token: reader.token });
  await page.waitForSelector('.chart canvas');
  expect(await page.$$('.actions, .actions button')).toEqual([]);
});
