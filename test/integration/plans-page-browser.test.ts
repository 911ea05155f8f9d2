import { mkdirSync } from 'node:fs';
import { pino } from 'pino';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import type { Gateway } from '../../gateway/server/gateway.ts';
import { makeToken } from '../support/admin-client.ts';
import {
  axeFindings,
  openTab,
  openWithToken,
  startBrowser,
  type Tab,
  watchedPage,
} from '../support/browser.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { until } from '../support/until.ts';

/**
 * The page "What if": an operator drags the limit of a plan in a chart of the keys' busiest minutes, and the simulator shows the effect of
 * that limit.
 */
let browser: Browser;
let gateway: Gateway;
let origin: string;
let baseUrl: string;
/** All tests share one tab. */
let tab: Tab;

const { token, entry } = makeToken('read');
const keys = [
  { key: makeKey({ id: 'acme', plan: 'free' }), requests: 70 },
  { key: makeKey({ id: 'calm', plan: 'free' }), requests: 12 },
  { key: makeKey({ id: 'busy', plan: 'free' }), requests: 45 },
];

const late = makeKey({ id: 'late', plan: 'lower' });
const guard = { before: { perDay: 60 }, refusedAtMost: '3 %', until: '2100-01-01' };

beforeAll(async () => {
  // The requests are two minutes old, because the page replays only complete minutes.
  let aheadMs = -120_000;
  const settings = await settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    plans: {
      free: { perMinute: 60, perDay: 1_000, trial: { perMinute: 40, perDay: 1_000 } },
      own: 'custom',
      lower: { perDay: 40, guard },
      idle: { perDay: 60, guard },
    },
    keys: [...keys.map(({ key }) => key.entry), late.entry],
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
  });
  const startMs = Date.now();
  // The clock is stopped while requests are sent, so that all requests of a key are in one minute.
  const nowMs = () => (aheadMs === 0 ? Date.now() : startMs + aheadMs);
  gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds({ simulationTimeoutMs: 20_000, planDistributionTimeoutMs: 20_000 }),
    nowMs,
  });
  const [started, chromium] = await Promise.all([gateway.start(), startBrowser()]);
  browser = chromium;
  origin = `http://127.0.0.1:${started.admin.port}`;
  baseUrl = `http://127.0.0.1:${started.listen.port}/v1`;
  for (const { key, requests } of keys) await send(key, requests);
  aheadMs = 0;
  tab = await openTab(browser, origin, token);
});
afterEach(() => {
  expect(tab.complaints.splice(0)).toEqual([]);
});
afterAll(async () => {
  await gateway.drain({ graceMs: 0 });
  await browser.close();
});

async function send({ secret }: { readonly secret: string }, requests: number): Promise<void> {
  for (let request = 0; request < requests; request++) {
    const headers = { authorization: `Bearer ${secret}` };
    await (await fetch(`${baseUrl}/nothing`, { headers })).arrayBuffer();
  }
}

const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) =>
    elements.map(({ textContent }) => textContent?.replaceAll(/\s+/g, ' ').trim() ?? ''),
  );
const verdictOf = async (page: Page) => (await textOf(page, '.verdict-text'))[0];

async function show(path: string, width?: number): Promise<Page> {
  const page = await tab.show(path, '.verdict-text', width);
  await page.waitForSelector('.spread .handle');
  return page;
}

it('dragging the line of a limit changes figures, table and address, and the address restores the limit', async () => {
  const page = await show('/plans?plan=free');
  // The pointer reaches only the visible part of the page, so the viewport shows the whole chart.
  await page.setViewport({ width: 1280, height: 1_500 });
  expect(await verdictOf(page)).toBe(
    '10 requests of 127 (7.9 %) were refused. Drag a limit, or type a new value.',
  );
  expect(await textOf(page, '.certainty summary')).toEqual([
    'The replay of the present plan agrees with the record.',
  ]);

  const boxOf = async (selector: string) => {
    const box = await (await page.$(selector))?.boundingBox();
    if (!box) throw new Error(`${selector} is not on the page`);
    return box;
  };
  await page.waitForSelector('.spread tr[data-from="20"]');
  const handle = await boxOf('.spread .handle');
  await page.mouse.move(handle.x + 20, handle.y + handle.height / 2);
  await page.mouse.down();
  const row = await boxOf('.spread tr[data-from="10"]');
  await page.mouse.move(row.x + 20, row.y + row.height / 2, { steps: 8 });
  await page.mouse.up();
  await expect.poll(() => new URL(page.url()).searchParams.get('minute')).toMatch(/^1[3-7]$/);
  const limit = Number(new URL(page.url()).searchParams.get('minute'));
  const more = 60 - limit + 45 - limit;
  await expect
    .poll(() => verdictOf(page))
    .toBe(
      `With ${limit} a minute, 2 keys would have been refused ${more} more requests (${Math.floor((100 * more) / 127)} % of the plan's). 1 of them was never refused before.`,
    );
  const rows = await textOf(page, '.what-if tbody tr');
  expect(rows).toHaveLength(2);
  expect(rows.find((text) => text.startsWith('busy'))).toContain('newly limited');
  expect(await textOf(page, '.spread .limit.before')).toContain('now 60');

  const before = await verdictOf(page);
  await show(`/plans${new URL(page.url()).search}`);
  await expect.poll(() => verdictOf(page)).toBe(before);
});

it('a limit can be typed or moved with the keyboard, and a higher limit frees keys', {
  tags: 'full',
}, async () => {
  const page = await show('/plans?plan=free&minute=80');
  await expect
    .poll(() => verdictOf(page))
    .toBe(
      "With 80 a minute, 1 key would have been refused 10 fewer requests (7.9 % of the plan's). 1 key would not have been refused at all.",
    );
  expect((await textOf(page, '.what-if tbody tr'))[0]).toContain('freed');
  await (await page.waitForSelector('.spread .handle'))?.focus();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await expect.poll(() => new URL(page.url()).searchParams.get('minute')).toBe('65');
  expect(await page.evaluate('document.activeElement?.className')).toBe('handle');
  await page.$eval('input[name="minute"]', (input) => (input as HTMLInputElement).select());
  await page.type('input[name="minute"]', '5');
  await expect.poll(() => verdictOf(page)).toMatch(/^With 5 a minute, 3 keys/);
});

it('a limit that is deleted to type another stays empty until then', { tags: 'full' }, async () => {
  const page = await show('/plans?plan=free');
  const field = 'input[name="minute"]';
  const limitIn = () => page.$eval(field, (input) => (input as HTMLInputElement).value);
  await (await page.waitForSelector(field))?.focus();
  await page.keyboard.press('End');
  for (let digit = 0; digit < 2; digit++) await page.keyboard.press('Backspace');
  await stateShown(page);
  expect(await limitIn()).toBe('');
  await page.keyboard.type('30');
  expect(await limitIn()).toBe('30');
  await expect.poll(() => new URL(page.url()).searchParams.get('minute')).toBe('30');
  // If the field loses the focus before the new value is complete, the field returns to its old value.
  for (let digit = 0; digit < 2; digit++) await page.keyboard.press('Backspace');
  await (await page.waitForSelector('.spread .handle'))?.focus();
  await expect.poll(limitIn).toBe('3');
});

/**
 * Waits for three responses about the state. The page renders each response, so it shows at least the first response when the third
 * response arrives.
 */
async function stateShown(page: Page): Promise<void> {
  for (let response = 0; response < 3; response++) {
    await page.waitForResponse((one) => one.url().endsWith('/api/v1/state'));
  }
}

it('the page requests the simulation again after a missing response', { tags: 'full' }, async () => {
  const { page } = await watchedPage(browser, origin, 1280);
  await page.setRequestInterception(true);
  let isAway = true;
  page.on('request', (request) =>
    isAway && request.url().endsWith('/simulate') ? request.abort('connectionrefused') : request.continue(),
  );
  await openWithToken(page, `${origin}/plans?plan=free`, token);
  await page.waitForSelector('.what-if [role=alert]');
  isAway = false;
  await expect.poll(() => verdictOf(page)).toMatch(/^10 requests of 127/);
  expect(await page.$$('.what-if [role=alert]')).toEqual([]);
});

it('the page shows what the trial of a plan would have refused, and of which keys', async () => {
  const page = await show('/plans?plan=free');
  await page.waitForSelector('.trial tbody tr');
  const [first] = await textOf(page, '.plans .section:first-child tbody tr');
  expect(first).toContain('60 a minute, 1,000 a daytrial: 40 a minute, 1,000 a day');
  expect(await textOf(page, '.trial .sentence')).toEqual([
    'Trial 40 a minute, 1,000 a day: 35 of 127 requests (27 %) would have been refused, 35 by the minute limit. 2 of 3 keys would have had refusals, 1 of them for the first time. The plan itself refused 10.',
  ]);
  const rows = await page.$$eval('.trial tbody tr', (all) =>
    all.map((row) => [...row.cells].slice(0, 6).map(({ textContent }) => textContent)),
  );
  expect(rows).toEqual([
    ['acme', '70', '10', '30', '42 %', 'minute 30'],
    ['busy', '45', '0', '5', '11 %', 'minute 5'],
  ]);
  await tab.show('/plans?plan=own', '.trial .sentence a');
  expect(await textOf(page, '.trial tbody tr')).toEqual([]);
  await page.click('.trial .sentence a');
  await page.waitForSelector('.trial tbody tr');
  await page.click('.trial tbody a');
  await page.waitForSelector('.windows .trial');
  expect(await textOf(page, '.windows .trial')).toEqual([
    expect.stringMatching(
      /^Trial 40 a minute, 1,000 a day: 30 of 70 requests \(42 %\) would have been refused, 30 by the minute limit\. The plan itself refused 10\. First \d\d:\d\d:00 UTC/,
    ),
  ]);
});

it('"Copy as YAML" gives the edit of the plan, with all of its limits', async () => {
  const page = await show('/plans?plan=free&minute=30');
  await page
    .browserContext()
    .overridePermissions(origin, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
  await page.bringToFront();
  await page.locator('.what-if .copy').click();
  await page.waitForFunction(
    "[...document.querySelectorAll('.tried [role=status]')].some((one) => one.textContent !== '')",
  );
  const yaml = String(await page.evaluate('navigator.clipboard.readText()'));
  expect(parse(yaml)).toEqual({ plans: { free: { perMinute: 30, perDay: 1_000 } } });
});

/** Checks a configuration whose plan has the given lines. Returns the warnings of the check, or its problems. */
function checkPlan(lines: readonly string[]): readonly string[] {
  const plan = lines.map((line) => `\n    ${line}`).join('');
  const text = mainDocument.replace(/free: .*/, `free:${plan}`);
  const loaded = loadSettings({
    file: configFolder({ 'tollgate.yaml': text }).file,
    env: {},
  });
  return loaded.kind === 'valid' ? loaded.warnings : [formatProblems(loaded.problems)];
}

const lineOf = { 'Try it': '.safe-edits li:nth-child(1)', 'Guard it': '.safe-edits li:nth-child(2)' };

/** Presses the button of a line, and returns the report of the page. The button of the guard is off until the simulation has ended. */
async function press(page: Page, button: keyof typeof lineOf): Promise<string> {
  const line = lineOf[button];
  await page.waitForSelector(`${line} button:not([disabled])`);
  expect((await textOf(page, `${line} button`))[0]).toBe(button);
  await page.focus(`${line} button`);
  await page.keyboard.press('Enter');
  await expect.poll(() => textOf(page, `${line} .copied`)).not.toEqual(['']);
  return (await textOf(page, `${line} .copied`)).join();
}

it('the page states which plans are guarded, and which plans a guard has reverted, with the command that tries the edit again', async () => {
  const headers = { authorization: `Bearer ${token}` };
  const lower = async () => {
    const { plans } = await (await fetch(`${origin}/api/v1/plans`, { headers })).json();
    return plans.find(({ name }: { name: string }) => name === 'lower');
  };
  await send(late, 30);
  await until('the guard has counted the requests', async () => (await lower()).watched.requests === 30);
  const page = await show('/plans?plan=free');
  expect(await textOf(page, '.guard-states li')).toEqual([
    'lower is guarded until 2100-01-01 UTC: it returns to 60 a day if its smaller limits refuse 3 % of its requests in ten minutes. Now they refuse 0 % of 30 requests.',
    'idle has a guard until 2100-01-01 UTC, but the guard watches nothing now: no limit of the plan is smaller than in before.',
  ]);
  await send(late, 80);
  await until('the guard has reverted the plan', async () => (await lower()).reverted !== undefined);
  expect(await textOf(await show('/plans?plan=lower'), '.guard-states li p')).toEqual([
    expect.stringMatching(/^lower is back at 60 a day: its guard reverted it .*\.$/),
    expect.stringMatching(/^The edit to 40 a day refused \d+ of \d+ requests \(\d+ %\) in ten minutes\./),
    expect.stringContaining('tollgate plans retry lower Copy the command'),
  ]);
  expect(await axeFindings(page)).toEqual([]);
});

it('the page folds the sentences about many guarded plans, and shows a reverted plan first', {
  tags: 'full',
}, async () => {
  const { page } = await watchedPage(browser, origin, 390);
  await openWithToken(page, `${origin}/keys`, token);
  await page.setRequestInterception(true);
  const shown = { before: { perMinute: 60 }, refusedAtMost: '3 %', untilAt: '2100-01-01T00:00:00.000Z' };
  const sinceAt = new Date().toISOString();
  const plans = Array.from({ length: 30 }, (_, number) => ({
    ...{ name: `plan-${number}`, isCustom: false, keys: 0, disabledKeys: 0, guard: shown },
    windows: [{ name: 'minute', limit: number === 20 ? 60 : 40 }],
    watched: { requests: 0, refused: 0 },
    ...(number === 20 && { reverted: { sinceAt, requests: 100, refused: 5, edit: { perMinute: 40 } } }),
  }));
  page.on('request', (request) =>
    request.url().endsWith('/api/v1/plans')
      ? request.respond({
          contentType: 'application/json',
          body: JSON.stringify({ plans, isComplete: true }),
        })
      : request.continue(),
  );
  await page.goto(`${origin}/plans`);
  await page.waitForSelector('.guard-states summary');
  expect(await textOf(page, '.guard-states > li')).toEqual([
    expect.stringMatching(/^plan-20 is back at 60 a minute/),
    expect.stringMatching(/^29 plans have a guard/),
  ]);
  const heightOf = () => page.$eval('.guard-states', (list) => list.getBoundingClientRect().height);
  expect(await heightOf()).toBeLessThan(400);
  await page.click('.guard-states summary');
  expect((await textOf(page, '.guard-states details li'))[28]).toMatch(
    /^plan-29 is guarded until 2100-01-01/,
  );
  expect(await heightOf()).toBeGreaterThan(1_000);
});

it('"Try it" and "Guard it" copy lines that check accepts below the plan', async () => {
  const page = await show('/plans?plan=free&minute=40');
  await page
    .browserContext()
    .overridePermissions(origin, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
  await page.bringToFront();
  const copied = async (button: keyof typeof lineOf) => {
    expect(await press(page, button)).toBe('copied');
    return String(await page.evaluate('navigator.clipboard.readText()'));
  };
  const [trial, guard] = [await copied('Try it'), await copied('Guard it')];
  expect(trial).toBe('trial: { perMinute: 40, perDay: 1000 }');
  // Two keys with refusals are not enough for a guard of three active keys, so the smallest share is proposed.
  expect(guard).toMatch(
    /^guard: \{ before: \{ perMinute: 60, perDay: 1000 \}, refusedAtMost: 1 %, until: \d{4}-\d\d-\d\d \}$/,
  );
  expect(checkPlan(['perMinute: 60', 'perDay: 1000', trial])).toEqual([]);
  expect(checkPlan(['perMinute: 40', 'perDay: 1000', guard])).toEqual([]);
  // A larger limit needs no guard.
  const larger = await show('/plans?plan=free&minute=80');
  await expect.poll(() => verdictOf(larger)).toMatch(/^With 80 a minute/);
  expect(await textOf(larger, '.safe-edits button')).toEqual(['Try it']);
});

it('without access to the clipboard, a button shows its line and selects it', async () => {
  const page = await show('/plans?plan=free&minute=40');
  // Over plain HTTP, a page of another host has no clipboard.
  await page.evaluate(
    "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })",
  );
  for (const [button, line] of [
    ['Try it', 'trial: { perMinute: 40, perDay: 1000 }'],
    ['Guard it', /^guard: \{ before: .* \}$/],
  ] as const) {
    expect(await press(page, button)).toContain('The text is selected');
    const selected = await page.waitForFunction(
      "document.activeElement.matches('textarea.selected') && String(document.getSelection())",
    );
    expect(await selected.jsonValue()).toEqual(typeof line === 'string' ? line : expect.stringMatching(line));
  }
  expect(await axeFindings(page)).toEqual([]);
  // The line of the former limits disappears with them.
  await page.$eval('input[name="minute"]', (input) => (input as HTMLInputElement).select());
  await page.type('input[name="minute"]', '30');
  await expect.poll(() => textOf(page, `${lineOf['Try it']} .selected`)).toEqual([]);
  await page.evaluate('delete navigator.clipboard');
});

for (const [width, themes] of [
  [1280, ['light']],
  [390, ['light', 'dark']],
] as const)
  it(`the page shows a key under both limits, whole at ${width} px (${themes.join(', ')})`, {
    tags: width === 390 ? ['full'] : [],
  }, async () => {
    const page = await show('/plans?plan=free&minute=30&key=busy', width);
    await page.waitForSelector('.what-if .chart canvas');
    expect(await textOf(page, '.what-if .legend')).toEqual([
      expect.stringMatching(/^sent/),
      expect.stringMatching(/^admitted now/),
      expect.stringMatching(/^admitted then/),
    ]);
    for (const theme of themes) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      expect([theme, await axeFindings(page)]).toEqual([theme, []]);
      const folder = process.env.SCREENSHOTS;
      if (folder === undefined) continue;
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: `${folder}/plans-${width}-${theme}.png`, fullPage: true });
    }
  });
