import type { Browser } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest';
import { makeToken } from '../../support/admin-client.ts';
import { axeFindings, openWithToken, type Tab, watchedPage } from '../../support/browser.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, testConfig } from '../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import {
  checkPlan,
  clipboardOf,
  type PlansPage,
  press,
  selectedIn,
  startPlansPage,
  textOf,
  verdictOf,
  withoutClipboard,
} from '../simulate/plans-page-fixture.ts';

/** The guard on the page about plans: its states, and the line that a simulation proposes. */
let plansPage: PlansPage;
let browser: Browser;
let origin: string;
let token: string;
let tab: Tab;
let show: PlansPage['show'];

const lineOfGuard = '.safe-edits li:nth-child(2)';

beforeAll(async () => {
  plansPage = await startPlansPage();
  ({ browser, origin, token, tab, show } = plansPage);
});
afterEach(() => {
  expect(tab.complaints.splice(0)).toEqual([]);
});
afterAll(() => plansPage.stop());

it('the page states which plans are guarded, and which plans a guard has reverted, with the command that tries the edit again', async () => {
  const alice = makeToken('read');
  const late = makeKey({ id: 'late', plan: 'lower' });
  const guard = { before: { perDay: 60 }, refusedAtMost: '3 %', until: '2100-01-01' };
  const guarded = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      plans: { lower: { perDay: 40, guard }, idle: { perDay: 60, guard } },
      keys: [late.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [alice.entry] },
      redis: { url: redisUrl(), prefix: freshPrefix() },
    }),
  );
  onTestFinished(async () => void (await guarded.stop('SIGKILL')));
  const send = async (requests: number) => {
    const headers = { authorization: `Bearer ${late.secret}` };
    for (let request = 0; request < requests; request++)
      await (await fetch(`${guarded.baseUrl}/nothing`, { headers })).arrayBuffer();
  };
  const lower = async () => {
    const headers = { authorization: `Bearer ${alice.token}` };
    const { plans } = await (await fetch(`${guarded.adminUrl}/api/v1/plans`, { headers })).json();
    return plans.find(({ name }: { name: string }) => name === 'lower');
  };
  await send(30);
  await until('the guard has counted the requests', async () => (await lower()).watched?.requests === 30);
  const { page } = await watchedPage(browser, guarded.adminUrl, 1280);
  await openWithToken(page, `${guarded.adminUrl}/plans`, alice.token);
  await page.waitForSelector('.guard-states li');
  expect(await textOf(page, '.guard-states li')).toEqual([
    'lower is guarded until 2100-01-01 UTC: it returns to 60 a day if its smaller limits refuse 3 % of its requests in ten minutes. Now they refuse 0 % of 30 requests.',
    'idle has a guard until 2100-01-01 UTC, but the guard watches nothing now: no limit of the plan is smaller than in before.',
  ]);
  await send(80);
  await until('the guard has reverted the plan', async () => (await lower()).reverted !== undefined);
  await page.reload();
  await expect
    .poll(() => textOf(page, '.guard-states li p'))
    .toEqual([
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

it('"Guard it" copies a line that check accepts below the plan', async () => {
  const page = await show('/plans?plan=free&minute=40');
  const copied = await clipboardOf(page, origin);
  expect(await press(page, lineOfGuard, 'Guard it')).toBe('copied');
  const guard = await copied();
  // Two keys with refusals are not enough for a guard of three active keys, so the smallest share is proposed.
  expect(guard).toMatch(
    /^guard: \{ before: \{ perMinute: 60, perDay: 1000 \}, refusedAtMost: 1 %, until: \d{4}-\d\d-\d\d \}$/,
  );
  expect(checkPlan(['perMinute: 40', 'perDay: 1000', guard])).toEqual([]);
  // A larger limit needs no guard.
  const larger = await show('/plans?plan=free&minute=80');
  await expect.poll(() => verdictOf(larger)).toMatch(/^With 80 a minute/);
  expect(await textOf(larger, '.safe-edits button')).toEqual(['Try it']);
});

it('without access to the clipboard, "Guard it" shows its line and selects it', async () => {
  const page = await show('/plans?plan=free&minute=40');
  const giveBack = await withoutClipboard(page);
  expect(await press(page, lineOfGuard, 'Guard it')).toContain('The text is selected');
  expect(await selectedIn(page)).toMatch(/^guard: \{ before: .* \}$/);
  expect(await axeFindings(page)).toEqual([]);
  await giveBack();
});
