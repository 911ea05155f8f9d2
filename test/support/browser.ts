import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { type Browser, launch, type Page } from 'puppeteer-core';
import { onTestFinished } from 'vitest';
import { requireProgram } from './require-program.ts';

/** The timeout is the same as in `until`. A browser on a slow machine needs much time to start and to load each page. */
const timeoutMs = 120_000;

/**
 * Starts Chromium from the `PATH`, by default its headless shell. The headless shell has the same engine, but no windows, no history and no
 * saved forms, so it takes a quarter of the CPU time. If the browser is missing, root on Debian installs the distribution's package, which
 * takes half a minute. On other machines the whole browser replaces a missing headless shell.
 *
 * @param options.userDataDir the folder of the browser's profile; by default a folder that is removed at the end
 */
export async function startBrowser({
  userDataDir,
  isWhole = false,
}: {
  readonly userDataDir?: string;
  readonly isWhole?: boolean;
} = {}): Promise<Browser> {
  const executablePath = await requireProgram({
    names: isWhole ? wholeBrowsers : [...headlessShells, ...wholeBrowsers],
    packageName: isWhole ? 'chromium' : 'chromium-headless-shell',
    advice: 'Some tests open pages in a browser and found none: put chromium on the PATH.',
  });
  // Chromium's own sandbox is not available to root in a container. The browser may open only pages of this machine.
  return launch({
    executablePath,
    headless: headlessShells.includes(basename(executablePath)) ? 'shell' : true,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
    timeout: timeoutMs,
    ...(userDataDir && { userDataDir }),
  });
}

const wholeBrowsers = ['chromium', 'chromium-browser', 'google-chrome'];
/** The names of the headless shell in Debian and in Chrome's own archive. */
const headlessShells = ['chromium-headless-shell', 'chrome-headless-shell'];

export interface WatchedPage {
  readonly page: Page;
  /** All complaints of the browser, and all requests to another origin. */
  readonly complaints: readonly string[];
}

/**
 * Opens a page in a fresh context, without data that another page has stored or cached. Collects the browser's complaints about the page.
 */
export async function watchedPage(browser: Browser, origin: string, width: number): Promise<WatchedPage> {
  const context = await browser.createBrowserContext();
  onTestFinished(() => context.close());
  return watched(await context.newPage(), origin, width);
}

async function watched(page: Page, origin: string, width: number) {
  page.setDefaultTimeout(timeoutMs);
  await page.setViewport({ width, height: 900 });
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  // A page aborts its pending requests when the user leaves it or its content changes.
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

/** Opens one tab for all tests of a file. Loading the document costs half a second of CPU time, so it is loaded once. */
export interface Tab {
  readonly page: Page;
  /** As of `WatchedPage`. Each test removes its own changes from the tab. */
  readonly complaints: string[];
  /** Opens an operators' page as a link does, but without any state of the previous page. Waits for an element of the page. */
  show(path: string, ready: string, width?: number): Promise<Page>;
}

/** @param token is entered in the form, as an operator does */
export async function openTab(browser: Browser, origin: string, token: string): Promise<Tab> {
  const { page, complaints } = await watched(await browser.newPage(), origin, 1280);
  await page.goto(`${origin}/changes`);
  await enterToken(page, token);
  await page.waitForSelector('header.top');
  const goTo = async (path: string, ready: string) => {
    await page.evaluate((to) => {
      history.pushState(null, '', to);
      dispatchEvent(new PopStateEvent('popstate'));
    }, path);
    await page.waitForSelector(ready);
  };
  return {
    page,
    complaints,
    async show(path, ready, width = 1280) {
      await page.setViewport({ width, height: 900 });
      // The tab opens an unknown path first, which removes the state of the previous page. Without this step, a page with the same path
      // would keep its state.
      await goTo('/nowhere', 'main > .empty a[href="/"]');
      await goTo(path, ready);
      return page;
    },
  };
}

export async function enterToken(page: Page, token: string): Promise<void> {
  const field = await page.waitForSelector('#token');
  await field?.type(token);
  await page.keyboard.press('Enter');
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The findings of axe-core on a page: the rule, and the elements. */
export async function axeFindings(page: Page): Promise<unknown> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe);
  return page.evaluate(
    'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html.slice(0, 150))]))',
  );
}
