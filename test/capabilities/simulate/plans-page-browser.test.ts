import { mkdirSync } from 'node:fs';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { axeFindings, openWithToken, type Tab, watchedPage } from '../../support/browser.ts';
import {
  checkPlan,
  clipboardOf,
  lineOfTrial,
  type PlansPage,
  press,
  selectedIn,
  startPlansPage,
  textOf,
  verdictOf,
  withoutClipboard,
} from './plans-page-fixture.ts';

/**
 * The page "What if": an operator drags the limit of a plan in a chart of the keys' busiest minutes, and the simulator shows the effect of
 * that limit.
 */
let plansPage: PlansPage;
let browser: Browser;
let origin: string;
let token: string;
/** All tests share one tab. */
let tab: Tab;
let show: PlansPage['show'];

beforeAll(async () => {
  plansPage = await startPlansPage({ own: 'custom' });
  ({ browser, origin, token, tab, show } = plansPage);
});
afterEach(() => {
  expect(tab.complaints.splice(0)).toEqual([]);
});
afterAll(() => plansPage.stop());

it('dragging the line of a limit changes figures, table and address, and the address restores the limit', async () => {
  const page = await show('/plans?plan=free');
  // The pointer reaches only the visible part of the page, so the viewport shows the whole chart.
  await page.setViewport({ width: 1280, height: 1_500 });
  expect(await verdictOf(page)).toBe(
    '10 requests of 127 (7.9 %) were refused. Drag a limit, or type a new value.',
  );
  expect(await textOf(page, '.certainty summary')).toEqual([
    'The replay under the limits of their time agrees with the record.',
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
  const copied = await clipboardOf(page, origin);
  await page.locator('.what-if .copy').click();
  await page.waitForFunction(
    "[...document.querySelectorAll('.tried [role=status]')].some((one) => one.textContent !== '')",
  );
  expect(parse(await copied())).toEqual({ plans: { free: { perMinute: 30, perDay: 1_000 } } });
});

it('"Try it" copies a line that check accepts below the plan', async () => {
  const page = await show('/plans?plan=free&minute=40');
  const copied = await clipboardOf(page, origin);
  expect(await press(page, lineOfTrial, 'Try it')).toBe('copied');
  const trial = await copied();
  expect(trial).toBe('trial: { perMinute: 40, perDay: 1000 }');
  expect(checkPlan(['perMinute: 60', 'perDay: 1000', trial])).toEqual([]);
});

it('without access to the clipboard, a button shows its line and selects it', async () => {
  const page = await show('/plans?plan=free&minute=40');
  const giveBack = await withoutClipboard(page);
  expect(await press(page, lineOfTrial, 'Try it')).toContain('The text is selected');
  expect(await selectedIn(page)).toBe('trial: { perMinute: 40, perDay: 1000 }');
  expect(await axeFindings(page)).toEqual([]);
  // The line of the former limits disappears with them.
  await page.$eval('input[name="minute"]', (input) => (input as HTMLInputElement).select());
  await page.type('input[name="minute"]', '30');
  await expect.poll(() => textOf(page, `${lineOfTrial} .selected`)).toEqual([]);
  await giveBack();
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
