import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { Page } from 'puppeteer-core';
import { onTestFinished } from 'vitest';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { settingsOf } from '../support/settings-of.ts';
import type { StoreProcess } from '../support/store-process.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

/** Starts a gateway for the pet store with the shipped API document, which `edit` may change. */
export async function startStoreGateway(
  store: StoreProcess,
  edit: (document: string) => string = (document) => document,
  overrides: Record<string, unknown> = {},
) {
  const key = makeKey();
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  const api = join(folder, 'openapi.yaml');
  await writeFile(api, edit(await readFile('config/openapi.yaml', 'utf8')));
  const settings = await settingsOf({
    upstream: { url: store.url, health: '/healthz' },
    keys: [key.entry],
    docsPath: '/docs',
    api,
    ...overrides,
  });
  await rm(folder, { recursive: true });
  const log = { logger: pino({ level: 'silent' }), access: () => {} };
  // The clock stands still, so no window starts over during a test.
  const startedMs = Date.now();
  const gateway = createGateway({ settings, log, bounds: tunedBounds(patientStore), nowMs: () => startedMs });
  const { listen, admin } = await gateway.start();
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  return { origin: `http://127.0.0.1:${listen.port}`, secret: key.secret, adminPort: admin.port };
}

export const textOf = (page: Page, selector: string) =>
  page.$$eval(selector, (elements) => elements.map(({ textContent }) => textContent?.trim()));
