import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createGateway } from '../support/create-gateway.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { type KeyEntry, makeKey } from '../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const narrow = { perMinute: 60, perDay: 1_000, operations: ['listPets', 'createPet'] };

/** Starts a gateway with one key. `send` returns the status, the code and the remaining requests of the minute. */
async function start(entry: Partial<KeyEntry>) {
  const key = makeKey(entry);
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  const settings = await settingsOf({
    upstream: { url: backend.url, health: '/healthz' },
    plans: {
      narrow,
      wide: { perMinute: 60, perDay: 1_000 },
      own: { custom: true, operations: narrow.operations },
    },
    keys: [key.entry],
  });
  const gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds({ windowsMs: freshWindows(Date.now()) }),
  });
  const { port } = (await gateway.start()).listen;
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  });
  return async (method: string, path: string) => {
    const headers = { authorization: `Bearer ${key.secret}` };
    const response = await fetch(`http://127.0.0.1:${port}/v1${path}`, { method, headers });
    const body = (await response.json()) as { code?: string };
    return {
      said: [response.status, body.code],
      remaining: Number(response.headers.get('x-ratelimit-remaining')),
      challenge: response.headers.get('www-authenticate'),
      forwarded: backend.requests.length,
    };
  };
}

it('a key may call the operations of its plan, and other operations give a charged 403', async () => {
  const send = await start({ plan: 'narrow' });
  expect(await send('GET', '/pets')).toMatchObject({ said: [200, undefined], remaining: 59, forwarded: 1 });
  expect(await send('GET', '/store/orders')).toEqual({
    said: [403, 'operation_not_allowed'],
    remaining: 58,
    challenge: 'Bearer realm="api", error="insufficient_scope"',
    forwarded: 1,
  });
  // An unknown path gets a 404, as with any other key.
  expect((await send('GET', '/nothing')).said).toEqual([404, 'not_found']);
  expect((await send('DELETE', '/pets')).said).toEqual([405, 'method_not_allowed']);
});

it('a key on a custom plan has its own limits, and may call the operations of the plan', async () => {
  const send = await start({ plan: 'own', limits: { perMinute: 3 } });
  expect(await send('GET', '/pets')).toMatchObject({ said: [200, undefined], remaining: 2, forwarded: 1 });
  expect(await send('GET', '/store/orders')).toMatchObject({
    said: [403, 'operation_not_allowed'],
    remaining: 1,
    forwarded: 1,
  });
});

it('operations of a key restrict those of its plan and cannot extend them', async () => {
  const send = await start({ plan: 'narrow', operations: ['listPets', 'listOrders'] });
  expect((await send('GET', '/pets')).said).toEqual([200, undefined]);
  expect((await send('POST', '/pets')).said).toEqual([403, 'operation_not_allowed']);
  expect((await send('GET', '/store/orders')).said).toEqual([403, 'operation_not_allowed']);
});

it('a key may have its own operations when its plan allows all', async () => {
  const send = await start({ plan: 'wide', operations: ['listOrders'] });
  expect((await send('GET', '/store/orders')).said).toEqual([200, undefined]);
  expect((await send('GET', '/pets')).said).toEqual([403, 'operation_not_allowed']);
});
