/**
 * Takes the screenshots in /README.md and in the README of the admin API. The gateways in the screenshots have traffic: `node
 * test/bench/pages/take-screenshots.ts [--minutes 16]`. One target is killed a minute before the screenshots are taken.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openWithToken, startBrowser } from '../../support/browser.ts';
import { startScene } from './scene.ts';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '16' } } });
const folder = fileURLToPath(new URL('../../../gateway/admin/pages/screenshots/', import.meta.url));

const scene = await startScene();
await sleep((Number(values.minutes) - 1) * 60_000);
await scene.killTarget();
await sleep(60_000);

const browser = await startBrowser();
for (const [name, path, ready] of [
  ['now', '/', '.happened .rows'],
  ['key', '/keys/acme', '.chart canvas'],
] as const) {
  const page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  await openWithToken(page, `${scene.origin}${path}`, scene.token);
  await page.waitForSelector(ready);
  // The wait is long enough for the page to request all lists twice.
  await sleep(10_000);
  // On a busy machine, responses may be late. Until a response arrives, the page shows outdated figures in grey.
  await page.waitForFunction("document.querySelector('.stale') === null");
  await page.screenshot({ path: `${folder}${name}.webp`, type: 'webp', quality: 85 });
}
await browser.close();
await scene.stop();
