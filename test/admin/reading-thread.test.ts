import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createGateway } from '../../gateway/server/gateway.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { makeKey } from '../support/gateway-process.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const { token, entry } = makeToken('read');

/** Starts a reading thread in memory. The caller can change the returned bounds while the thread runs. */
async function start() {
  const bounds: { -readonly [Name in keyof Bounds]: Bounds[Name] } = { ...tunedBounds({}) };
  const logged: string[] = [];
  const settings = await settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    keys: [makeKey({ id: 'acme' }).entry],
  });
  const gateway = createGateway({
    settings,
    log: { logger: pino({}, { write: (line) => void logged.push(JSON.parse(line).msg) }), access: () => {} },
    bounds,
  });
  const { admin } = await gateway.start();
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  const ask = (path: string, json?: object) =>
    askAdmin(admin.port, `/api/v1${path}`, { token, ...(json && { method: 'POST', json }) });
  return { bounds, logged, ask };
}

const ended = 'the thread that reads for operators ended, and is replaced';

it('a thread that is stuck or out of memory is replaced: its requests get 503, and no other request waits for it', async () => {
  const { bounds, logged, ask } = await start();
  const usual = { ...bounds };
  bounds.readingStuckMs = 1;
  const [stuck, state] = await Promise.all([ask('/keys/acme'), ask('/state')]);
  expect([stuck.status, stuck.headers['retry-after'], state.status]).toEqual([503, '1', 200]);
  bounds.readingStuckMs = usual.readingStuckMs;
  bounds.readingThreadHeapMebibytes = 4;
  expect((await ask('/keys/acme')).status).toBe(503);
  bounds.readingThreadHeapMebibytes = usual.readingThreadHeapMebibytes;
  expect((await ask('/keys/acme')).body.id).toBe('acme');
  expect(logged.filter((line) => line === ended)).toHaveLength(2);
});

it('the API document is made once', async () => {
  const { bounds, ask } = await start();
  const document = (await ask('/openapi.json')).body;
  // The reading thread ends, so the response with the API document comes from the cache.
  bounds.readingStuckMs = 1;
  expect((await ask('/keys/acme')).status).toBe(503);
  expect((await ask('/openapi.json')).body).toEqual(document);
});
