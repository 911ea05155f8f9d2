import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, launch, type Page } from 'puppeteer-core';
import { onTestFinished } from 'vitest';
import { requireProgram } from './require-program.ts';

/** As long as `until` waits. A browser takes long for its start and for each page where the machine is slow. */
const timeoutMs = 120_000;

/**
 * Chromium: one on the PATH, or as root on Debian the distribution's own, which takes a minute to install.
 *
 * @param userDataDir the folder of its profile; by default one that is removed at the end
 */
export async function startBrowser(userDataDir?: string): Promise<Browser> {
  const executablePath = await requireProgram({
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    packageName: 'chromium',
    advice: 'The tests of the API reference need a browser and found none: put chromium on the PATH.',
  });
  // Tests run as root in containers, where Chromium's own sandbox is not available. It opens pages of this machine alone.
  return launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: timeoutMs,
    ...(userDataDir && { userDataDir }),
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** All that a browser complains about, and every request to another origin. */
  readonly complaints: readonly string[];
}

/** A page, and what its browser complains about. */
export async function watchedPage(browser: Browser, origin: string, width: number): Promise<WatchedPage> {
  // A context of its own: nothing that another page stored or cached is there.
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
  // A page that is left, or shows something else, aborts what it has asked for.
  page.on('requestfailed', (request) => {
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') complaints.push(`failed: ${request.url()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) complaints.push(`left the origin: ${url}`);
  });
  return { page, complaints };
}

/** Opens a page of the operators' with a token, as if it had been entered in this tab before. */
export async function openWithToken(page: Page, url: string, token: string): Promise<void> {
  const source = `if (location.protocol.startsWith('http')) sessionStorage.setItem('token', ${JSON.stringify(token)})`;
  const { identifier } = await page.evaluateOnNewDocument(source);
  await page.goto(url);
  await page.removeScriptToEvaluateOnNewDocument(identifier);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe-core finds on a page: the rule, and the elements. */
export async function axeFindings(page: Page): Promise<unknown> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe);
  return page.evaluate(
    'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html.slice(0, 150))]))',
  );
}
