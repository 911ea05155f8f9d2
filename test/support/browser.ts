import { type Browser, launch, type Page } from 'puppeteer-core';
import { onTestFinished } from 'vitest';
import { requireProgram } from './require-program.ts';

/** Chromium: one on the PATH, or as root on Debian the distribution's own, which takes a minute to install. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = await requireProgram({
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    packageName: 'chromium',
    advice: 'The tests of the API reference need a browser and found none: put chromium on the PATH.',
  });
  // Tests run as root in containers, where Chromium's own sandbox is not available. It opens pages of this machine alone.
  return launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
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
  await page.setViewport({ width, height: 900 });
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:')) complaints.push(`left the origin: ${url}`);
  });
  return { page, complaints };
}
