import { pino } from 'pino';
import { afterEach, expect, it } from 'vitest';
import type { ProcessPart } from '../../gateway/capabilities/interfaces/running.ts';
import { createRequestSide } from '../../gateway/server/request-side.ts';
import { openStores } from '../../gateway/server/stores.ts';
import { createLineLog, makeKey } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** The request path of a gateway with one more part, in front of a backend that answers 200. */
async function serveWith(part: ProcessPart) {
  const backend = await startRecordingBackend();
  opened.push(() => backend.close());
  backend.react = (_request, socket) => socket.write(okResponse('fine'));
  const { entry, secret } = makeKey({ id: 'acme' });
  const settings = await settingsOf({ upstream: { url: backend.url }, keys: [entry] });
  const { lines, add } = createLineLog();
  const write = (text: string) => add(JSON.parse(text));
  const log = { logger: pino({ base: null }, { write }), access: write };
  const bounds = tunedBounds({ drainDeadlineMs: 0 });
  const common = { bounds, nowMs: Date.now, onEvent: () => {} };
  const stores = openStores({ settings: () => settings, log: log.logger, ...common });
  const capabilities = { ...stores.capabilities, probe: part };
  const side = createRequestSide({
    settings,
    processId: 'probe',
    stores: { ...stores, capabilities },
    log,
    onKeyChange: () => {},
    pid: process.pid,
    ...common,
  });
  const { port } = await side.listen({ host: '127.0.0.1', port: 0 });
  opened.push(async () => {
    await side.drain();
    await stores.flush();
    stores.close();
  });
  const send = (path: string, token = secret) =>
    fetch(`http://127.0.0.1:${port}/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
  return { send, lines, backend };
}

it('calls the hooks of a part in their order, each observer once', async () => {
  const calls: string[] = [];
  const { send } = await serveWith({
    hooks: () => ({
      observeDecision: [({ key }, units) => void calls.push(`decision ${key.id} ${units}`)],
      refuse: [
        () => {
          calls.push('refuse');
          return undefined;
        },
      ],
      observeAttempt: [({ key }, { status }) => void calls.push(`attempt ${key.id} ${status}`)],
      observeEnd: [({ key, status }) => void calls.push(`end ${key?.id} ${status}`)],
    }),
  });
  const response = await send('/pets');
  expect(await response.text()).toBe('fine');
  await expect.poll(() => calls).toEqual(['decision acme 1', 'refuse', 'attempt acme 200', 'end acme 200']);
});

it('sends the header fields of the first part that has some, in place of the client’s', async () => {
  const asked: number[] = [];
  const { send, backend } = await serveWith({
    hooks: () => ({
      attemptFields: [
        () => undefined,
        () => ({
          replaced: new Set(['x-attempt']),
          fieldsOf(attempt) {
            asked.push(attempt);
            return ['X-Attempt', String(attempt)];
          },
        }),
        () => {
          throw new Error('the first result counts');
        },
      ],
    }),
  });
  expect((await send('/pets')).status).toBe(200);
  expect(asked).toEqual([1]);
  expect(backend.requests[0]?.head).toContain('\r\nX-Attempt: 1\r\n');
});

it('the access line has the trace that a part adds at the end', async () => {
  const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
  const { send, lines } = await serveWith({
    hooks: () => ({ observeEnd: [(exchange) => void Object.assign(exchange, { trace })] }),
  });
  await send('/pets');
  await expect.poll(() => lines.find(({ status }) => status === 200)).toMatchObject(trace);
});

it('calls the observers of the end also for a request without a decision', async () => {
  const ended: number[] = [];
  const { send } = await serveWith({
    hooks: () => ({ observeEnd: [({ status }) => void ended.push(status)] }),
  });
  expect((await send('/pets', 'unknown')).status).toBe(401);
  await expect.poll(() => ended).toEqual([401]);
});

it('logs an exception of an observer, and neither the response nor the access log changes', async () => {
  const fail = () => {
    throw new Error('a fault of the observer');
  };
  const { send, lines } = await serveWith({
    hooks: () => ({ observeAttempt: [fail], observeEnd: [fail] }),
  });
  const response = await send('/pets');
  expect([response.status, await response.text()]).toEqual([200, 'fine']);
  await expect.poll(() => lines.filter(({ msg }) => msg === 'a bug in the request path')).toHaveLength(2);
  expect(lines.filter(({ status }) => status === 200)).toHaveLength(1);
});
