/**
 * Measures the cost of an open page for a browser: `node test/bench/pages/measure-pages.ts [--minutes 5] [--path '/?period=24h'] [--slow]`.
 * Prints the time until a page shows figures. Then the page makes ten requests each second. With `--slow`, the page makes requests at its
 * normal rate. While the responses arrive, the program prints the heap after each garbage collection and the CPU share of the process.
 * Exits with 1 when a figure exceeds its limit in `promised`.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Browser, CDPSession } from 'puppeteer-core';
import { openWithToken, startBrowser } from '../../support/browser.ts';
import { type Scene, startScene } from './scene.ts';

const promised = { firstFiguresMs: 1_000, heapBytes: 50_000_000, cpuShare: 0.05 };
const sampleEveryMs = 20_000;
/** The browser optimises the page's code during the first seconds. */
const warmUpMs = 20_000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    path: { type: 'string', default: '/?period=24h' },
    slow: { type: 'boolean', default: false },
  },
});

/** Measures the time until a browser with an empty cache shows the sentence at the top of the page. */
async function measureFirstFigures(browser: Browser, { origin, token }: Scene): Promise<number> {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.evaluateOnNewDocument(`
    new MutationObserver((_, observer) => {
      if (!/\\d/.test(document.querySelector('.figure .value')?.textContent ?? '')) return;
      observer.disconnect();
      requestAnimationFrame(() => { window.figuresAtMs = performance.now(); });
    }).observe(document, { childList: true, characterData: true, subtree: true });`);
  await openWithToken(page, `${origin}/`, token);
  const found = await page.waitForFunction('window.figuresAtMs');
  const ms = Number(await found.jsonValue());
  await context.close();
  return ms;
}

/**
 * With these edits of its modules, the page requests `/state` ten times a second, even when responses are slow. Without the edits, the page
 * requests `/state` once a second.
 */
const faster = [
  { module: 'live.js', from: 'stateEveryMs = 1_000', to: 'stateEveryMs = 100' },
  { module: 'api.js', from: 'busyShareMax = 1 / 15', to: 'busyShareMax = 10' },
];

/**
 * The page is opened without puppeteer, because puppeteer receives an event for every request, which costs more than the request.
 */
async function openFastPage(browser: Browser, { origin, token }: Scene): Promise<CDPSession> {
  const whole = await browser.target().createCDPSession();
  await whole.send('Target.createTarget', { url: 'about:blank#fast' });
  const target = await browser.waitForTarget((one) => one.url() === 'about:blank#fast');
  const cdp = await target.createCDPSession();
  await cdp.send('Emulation.setDeviceMetricsOverride', {
    width: 1280,
    height: 900,
    deviceScaleFactor: 1,
    mobile: false,
  });
  await cdp.send('Page.enable');
  await cdp.send('Fetch.enable', {
    patterns: faster.map(({ module }) => ({ urlPattern: `*/assets/${module}` })),
  });
  let replaced = 0;
  cdp.on('Fetch.requestPaused', async ({ requestId, request: { url } }) => {
    const change = faster.find(({ module }) => url.endsWith(module)) ?? faster[0];
    const folder = new URL('../../../gateway/admin/pages/browser/', import.meta.url);
    const text = await readFile(new URL(change?.module ?? '', folder), 'utf8');
    if (!change || !text.includes(change.from)) throw new Error(`${url} no longer says how often it asks`);
    await cdp.send('Fetch.fulfillRequest', {
      requestId,
      responseCode: 200,
      responseHeaders: [{ name: 'Content-Type', value: 'text/javascript' }],
      body: Buffer.from(values.slow ? text : text.replace(change.from, change.to)).toString('base64'),
    });
    replaced += 1;
  });
  await cdp.send('Page.addScriptToEvaluateOnNewDocument', {
    source:
      `sessionStorage.setItem('token', '${token}'); ` +
      "window.responses = 0; new PerformanceObserver((list) => { window.responses += list.getEntries().length; }).observe({ type: 'resource' });",
  });
  await cdp.send('Page.navigate', { url: `${origin}${values.path}` });
  await sleep(warmUpMs);
  if (replaced !== faster.length) throw new Error('the page was not made faster');
  await cdp.send('Fetch.disable');
  await cdp.send('Performance.enable');
  return cdp;
}

interface Sample {
  readonly atMs: number;
  /**
   * The heap after a garbage collection that this program forces. The sample has the CPU time before and after the forced collection, so
   * that the figures can exclude this collection.
   */
  readonly heapBytes: number;
  readonly before: CpuSeconds;
  readonly after: CpuSeconds;
  readonly nodes: number;
  readonly responses: number;
}

/** The CPU time of the page's main thread, and of all renderer processes. */
interface CpuSeconds {
  readonly mainThread: number;
  readonly renderers: number;
}

async function takeSample(browser: Browser, cdp: CDPSession): Promise<Sample> {
  const system = await browser.target().createCDPSession();
  const metric = async (name: string) => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return metrics.find((one) => one.name === name)?.value ?? Number.NaN;
  };
  const cpuSeconds = async (): Promise<CpuSeconds> => {
    const { processInfo } = await system.send('SystemInfo.getProcessInfo');
    const renderers = processInfo.filter(({ type }) => type === 'renderer');
    return {
      mainThread: await metric('TaskDuration'),
      renderers: renderers.reduce((sum, { cpuTime }) => sum + cpuTime, 0),
    };
  };
  const before = await cpuSeconds();
  await cdp.send('HeapProfiler.collectGarbage');
  const { result } = await cdp.send('Runtime.evaluate', { expression: 'window.responses' });
  const sample = {
    atMs: performance.now(),
    heapBytes: await metric('JSHeapUsedSize'),
    before,
    after: await cpuSeconds(),
    nodes: await metric('Nodes'),
    responses: Number(result.value),
  };
  await system.detach();
  return sample;
}

/** The CPU seconds per second between two samples. */
function share(from: Sample, to: Sample, of: keyof CpuSeconds): number {
  return (to.before[of] - from.after[of]) / ((to.atMs - from.atMs) / 1_000);
}

/** The growth of the heap per hour, by least squares. */
function growthPerHour(samples: readonly Sample[]): number {
  const mean = (of: (sample: Sample) => number) =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const [at, heap] = [mean(({ atMs }) => atMs), mean(({ heapBytes }) => heapBytes)];
  const covariance = mean(({ atMs, heapBytes }) => (atMs - at) * (heapBytes - heap));
  return (covariance / mean(({ atMs }) => (atMs - at) ** 2)) * 3_600_000;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const percent = (part: number) => `${(part * 100).toFixed(1)} %`;

const scene = await startScene({ gateways: 1 });
const browser = await startBrowser();
try {
  await sleep(3_000);
  const first: number[] = [];
  for (let load = 0; load < 5; load++) first.push(await measureFirstFigures(browser, scene));
  console.log(`figures after ${first.map((ms) => Math.round(ms)).join(', ')} ms`);

  const cdp = await openFastPage(browser, scene);
  const samples = [await takeSample(browser, cdp)];
  const shares: number[] = [];
  const untilMs = performance.now() + Number(values.minutes) * 60_000;
  while (performance.now() < untilMs) {
    await sleep(sampleEveryMs);
    const sample = await takeSample(browser, cdp);
    const last = samples.at(-1) ?? sample;
    const seconds = (sample.atMs - last.atMs) / 1_000;
    samples.push(sample);
    shares.push(share(last, sample, 'renderers'));
    console.log(
      `${megabytes(sample.heapBytes)} of heap, ${sample.nodes} nodes, ${percent(share(last, sample, 'renderers'))} of a core ` +
        `(${percent(share(last, sample, 'mainThread'))} in the main thread), ${((sample.responses - last.responses) / seconds).toFixed(1)} responses a second`,
    );
  }
  const end = samples.at(-1);
  if (!end) throw new Error('samples were taken');
  const cpuShare = shares.reduce((sum, one) => sum + one, 0) / shares.length;
  const growth = growthPerHour(samples);
  const afterAnHour = end.heapBytes + Math.max(0, growth);
  const median = first.toSorted((a, b) => a - b)[2] ?? 0;
  console.log(
    `${values.path}: figures after ${Math.round(median)} ms (median of five), ${percent(cpuShare)} of a core, heap ${megabytes(end.heapBytes)}, ` +
      `grows by ${megabytes(growth)} an hour`,
  );
  const holds =
    median < promised.firstFiguresMs && cpuShare < promised.cpuShare && afterAnHour < promised.heapBytes;
  if (!holds) process.exitCode = 1;
} finally {
  await browser.close();
  await scene.stop();
}
