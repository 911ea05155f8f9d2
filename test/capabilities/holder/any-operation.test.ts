import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createGateway } from '../../support/create-gateway.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { okResponse, startRecordingBackend } from '../../support/recording-backend.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

it('the path of the limits is not forwarded and not charged in a configuration without an API document', async () => {
  const key = makeKey();
  const backend = await startRecordingBackend({ react: (_, socket) => socket.write(okResponse('[]')) });
  const settings = await settingsOf({
    baseUrl: 'http://localhost',
    api: undefined,
    limitsPath: '/limits',
    upstream: { url: backend.url, health: '/healthz' },
    plans: { free: { perDay: 1 } },
    keys: [key.entry],
  });
  const log = { logger: pino({ level: 'silent' }), access: () => {} };
  const gateway = createGateway({ settings, log, bounds: tunedBounds({}) });
  const { port } = (await gateway.start()).listen;
  onTestFinished(async () => {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  });
  const headers = { authorization: `Bearer ${key.secret}` };
  const send = async (method: string, path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
    await response.text();
    return response.status;
  };

  expect(await send('GET', '/limits')).toBe(200);
  expect(await send('GET', '/limits/of/mine')).toBe(200);
  expect(await send('GET', '/')).toBe(429);
  expect(await send('GET', '/limits')).toBe(200);
  expect(backend.requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'GET /limits/of/mine',
  ]);
});
