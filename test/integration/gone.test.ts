import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { expectGatewayResponse } from '../support/gateway-response.ts';
import { okResponse, startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';

const sunsetMs = Date.UTC(2030, 11, 5);

it('GET /pets/{petId} is served to the last millisecond before its sunset, and then gets a charged 410', async () => {
  const backend = await startRecordingBackend({
    react: (_request, socket) => socket.write(okResponse('{}')),
  });
  const key = makeKey();
  let nowMs = sunsetMs - 1;
  const gateway = createGateway({
    settings: await settingsOf({ upstream: { url: backend.url, health: '/healthz' }, keys: [key.entry] }),
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    nowMs: () => nowMs,
  });
  const { listen } = await gateway.start();
  const get = (path: string, headers: Record<string, string> = { Authorization: `Bearer ${key.secret}` }) =>
    fetch(`http://127.0.0.1:${listen.port}/v1${path}`, { headers });

  try {
    await expectGatewayResponse(await get('/pets/1'), 200);
    nowMs = sunsetMs;
    const gone = await get('/pets/1');
    expect(await expectGatewayResponse(gone, 410)).toMatchObject({ code: 'gone' });
    expect(gone.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
    expect(gone.headers.get('link')).toContain('</v1/pets>; rel="successor-version"');
    expect(gone.headers.get('cache-control')).toBe('no-store');
    // This is the first request of a new minute.
    expect(gone.headers.get('x-ratelimit-remaining')).toBe('59');
    await expectGatewayResponse(await get('/pets/1', {}), 401);
    await expectGatewayResponse(await get('/pets'), 200);
    expect(backend.requests.map(({ target }) => target)).toEqual(['/v1/pets/1', '/v1/pets']);
  } finally {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  }
});
