import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, launch, type Page } from 'puppeteer-core';
import { onTestFinished } from 'vitest';
import { requireProgram } from './require-program.ts';

/** As long as `until` waits. A browser on a slow machine takes long to start and to load each page. */
const timeoutMs = 120_000;

/**
 * Chromium: the one on the PATH, or as root on Debian the distribution's package, which takes a minute to install.
 *
 * @param userDataDir the folder of its profile; by default a folder that is removed at the end
 */
export async function startBrowser(userDataDir?: string): Promise<Browser> {
  const executablePath = await requireProgram({
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    packageName: 'chromium',
    advice: 'The tests of the API reference need a browser and found none: put chromium on the PATH.',
  });
  // Chromium's own sandbox is not available to root in a container. The browser opens only pages of this machine.
  return launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: timeoutMs,
    ...(userDataDir && { userDataDir }),
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** Every complaint of the browser, and every request to another origin. */
  readonly complaints: readonly string[];
}

/** Opens a page, and collects the complaints of its browser. */
export async function watchedPage(browser: Browser, origin: string, width: number): Promise<WatchedPage> {
  // A fresh context has no data that another page stored or cached.
  const context = await browser.createBrowserContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(timeoutMs);
  await page.setViewport({ width, height: 900 });
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  // A page aborts its pending requests when it is left or changes its content.
  page.on('requestfailed', (request) => {
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') complaints.push(`failed: ${request.url()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) complaints.push(`left the origin: ${url}`);
  });
  return { page, complaints };
}

/** Opens an operators' page with a token, as if the operator had entered it in this tab before. */
export async function openWithToken(page: Page, url: string, token: string): Promise<void> {
  const source = `if (location.protocol.startsWith('http')) sessionStorage.setItem('token', ${JSON.stringify(token)})`;
  const { identifier } = await page.evaluateOnNewDocument(source);
  await page.goto(url);
  await page.removeScriptToEvaluateOnNewDocument(identifier);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The findings of axe-core on a page: the rule, and the elements. */
export async function axeFindings(page: Page): Promise<unknown> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe);
  return page.evaluate(
    'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html.slice(0, 150))]))',
  );
}
