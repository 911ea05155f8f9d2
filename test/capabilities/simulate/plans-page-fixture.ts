import { pino } from 'pino';
import type { Page } from 'puppeteer-core';
import { expect } from 'vitest';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { makeToken } from '../../support/admin-client.ts';
import { openTab, startBrowser } from '../../support/browser.ts';
import { configFolder, mainDocument, redisLine } from '../../support/config-folder.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const keys = [
  { key: makeKey({ id: 'acme', plan: 'free' }), requests: 70 },
  { key: makeKey({ id: 'calm', plan: 'free' }), requests: 12 },
  { key: makeKey({ id: 'busy', plan: 'free' }), requests: 45 },
];

/**
 * Starts a gateway whose plan `free` has three keys with requests from two minutes ago, and opens its pages in one tab.
 *
 * @param plans further plans
 */
export async function startPlansPage(plans: object = {}) {
  const { token, entry } = makeToken('read');
  // The requests are two minutes old, because the page replays only complete minutes.
  let aheadMs = -120_000;
  const settings = await settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    plans: {
      free: { perMinute: 60, perDay: 1_000, trial: { perMinute: 40, perDay: 1_000 } },
      ...plans,
    },
    keys: keys.map(({ key }) => key.entry),
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
  });
  const startMs = Date.now();
  // The clock is stopped while requests are sent, so that all requests of a key are in one minute.
  const nowMs = () => (aheadMs === 0 ? Date.now() : startMs + aheadMs);
  const gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds({ simulationTimeoutMs: 20_000, planDistributionTimeoutMs: 20_000 }),
    nowMs,
  });
  const [started, browser] = await Promise.all([gateway.start(), startBrowser()]);
  const origin = `http://127.0.0.1:${started.admin.port}`;
  const send = async ({ secret }: { readonly secret: string }, requests: number): Promise<void> => {
    for (let request = 0; request < requests; request++) {
      const headers = { authorization: `Bearer ${secret}` };
      await (await fetch(`http://127.0.0.1:${started.listen.port}/v1/nothing`, { headers })).arrayBuffer();
    }
  };
  for (const { key, requests } of keys) await send(key, requests);
  aheadMs = 0;
  const tab = await openTab(browser, origin, token);
  return {
    ...{ browser, origin, token, tab },
    async show(path: string, width?: number): Promise<Page> {
      const page = await tab.show(path, '.verdict-text', width);
      await page.waitForSelector('.spread .handle');
      return page;
    },
    async stop(): Promise<void> {
      await gateway.drain({ graceMs: 0 });
      await browser.close();
    },
  };
}

export type PlansPage = Awaited<ReturnType<typeof startPlansPage>>;

export const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) =>
    elements.map(({ textContent }) => textContent?.replaceAll(/\s+/g, ' ').trim() ?? ''),
  );

export const verdictOf = async (page: Page) => (await textOf(page, '.verdict-text'))[0];

/** Checks a configuration whose plan has the given lines. Returns the warnings of the check, or its problems. */
export function checkPlan(lines: readonly string[]): readonly string[] {
  const plan = lines.map((line) => `\n    ${line}`).join('');
  const text = mainDocument.replace(/free: .*/, `free:${plan}`) + redisLine;
  const loaded = loadSettings({
    file: configFolder({ 'tollgate.yaml': text }).file,
    env: {},
  });
  return loaded.kind === 'valid' ? loaded.warnings : [formatProblems(loaded.problems)];
}

export const lineOfTrial = '.safe-edits li:nth-child(1)';

/** Allows the page to use the clipboard, and returns a function that reads it. */
export async function clipboardOf(page: Page, origin: string): Promise<() => Promise<string>> {
  await page
    .browserContext()
    .overridePermissions(origin, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
  await page.bringToFront();
  return async () => String(await page.evaluate('navigator.clipboard.readText()'));
}

/** Takes the clipboard away, as over plain HTTP on another host. Returns a function that gives it back. */
export async function withoutClipboard(page: Page): Promise<() => Promise<void>> {
  await page.evaluate(
    "Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })",
  );
  return async () => void (await page.evaluate('delete navigator.clipboard'));
}

/** Presses the button of a line, and returns the report of the page. The button of a proposal is off until the simulation has ended. */
export async function press(page: Page, line: string, label: string): Promise<string> {
  await page.waitForSelector(`${line} button:not([disabled])`);
  expect((await textOf(page, `${line} button`))[0]).toBe(label);
  await page.focus(`${line} button`);
  await page.keyboard.press('Enter');
  await expect.poll(() => textOf(page, `${line} .copied`)).not.toEqual(['']);
  return (await textOf(page, `${line} .copied`)).join();
}

/** The text that the page has selected in a text field. */
export async function selectedIn(page: Page): Promise<unknown> {
  const selected = await page.waitForFunction(
    "document.activeElement.matches('textarea.selected') && String(document.getSelection())",
  );
  return selected.jsonValue();
}
