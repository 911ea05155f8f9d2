import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../../../support/admin-client.ts';
import { startBrowser, watchedPage } from '../../../support/browser.ts';
import { startGatewayHere } from '../../../support/gateway-here.ts';
import { makeKey, type RunningGateway, testConfig } from '../../../support/gateway-process.ts';
import {
  okResponse,
  type RecordingBackend,
  startRecordingBackend,
} from '../../../support/recording-backend.ts';

const token = makeToken('write', 'ops');
const key = makeKey({ plan: 'free' });
let backend: RecordingBackend;
let gateway: RunningGateway;

/** One request of the key fails, and the key gets its unit back. */
beforeAll(async () => {
  backend = await startRecordingBackend({
    react: (_request, socket) => socket.write(okResponse('no', 503)),
  });
  gateway = await startGatewayHere(
    testConfig({
      upstream: { url: backend.url },
      keys: [key.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
      limitsPath: '/limits',
    }),
  );
  const headers = { authorization: `Bearer ${key.secret}` };
  expect((await fetch(`${gateway.baseUrl}/pets`, { headers })).status).toBe(503);
  const period = { from: new Date(Date.now() - 600_000).toISOString(), to: new Date().toISOString() };
  const run = { token: token.token, method: 'POST', json: period };
  const { body } = await askAdmin(Number(new URL(gateway.adminUrl).port), '/api/v1/makegood', run);
  expect(body.creditedKeys).toBe(1);
});
afterAll(async () => {
  await gateway.stop();
  await backend.close();
});

it('the holder of a key reads the credits of the key', async () => {
  const own = await fetch(`http://127.0.0.1:${gateway.port}/limits`, {
    headers: { authorization: `Bearer ${key.secret}` },
  });
  expect(await own.json()).toMatchObject({
    credits: [{ failedUnits: 1, givenBack: { day: 1 } }],
  });
});

it('the page of the key and the page for its holder show the credits', { tags: 'full' }, async () => {
  const browser = await startBrowser();
  onTestFinished(() => browser.close());
  const textOf = async (url: string, input: string, secret: string, selector: string) => {
    const { page, complaints } = await watchedPage(browser, new URL(url).origin, 1_200);
    await page.goto(url);
    await (await page.waitForSelector(input))?.type(`${secret}\n`);
    const found = await page.waitForSelector(selector);
    const text = await found?.evaluate((element) => element.textContent);
    expect(complaints).toEqual([]);
    return text?.replaceAll(/\s+/g, ' ');
  };
  const { adminUrl, port } = gateway;
  const forOperators = await textOf(`${adminUrl}/keys/${key.entry.id}`, 'input', token.token, '.credit');
  expect(forOperators).toMatch(/given back .*: 1 unit .* for requests that failed/);
  const ofHolder = `http://127.0.0.1:${port}/limits`;
  const forHolder = await textOf(ofHolder, '#key', key.secret, '#shown:not([hidden])');
  expect(forHolder).toMatch(/1 unit .* given back for requests/);
});
