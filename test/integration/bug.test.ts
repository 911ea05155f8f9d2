import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { startRecordingBackend } from '../support/recording-backend.ts';
import { settingsOf } from '../support/settings-of.ts';

it('a bug that also breaks the error response closes its connection, is logged, and affects no other connection', async () => {
  const backend = await startRecordingBackend();
  const key = makeKey();
  const settings = await settingsOf({
    upstream: { url: backend.url, health: '/healthz' },
    keys: [key.entry],
  });
  // A header field cannot contain the character `ř`. In a valid configuration, `x-stability` has no such character.
  const operations = settings.operations.map((operation) =>
    operation.id === 'listPets' ? { ...operation, stability: 'ř' as 'beta' } : operation,
  );
  const lines: string[] = [];
  const gateway = createGateway({
    settings: { ...settings, operations },
    log: { logger: pino({ level: 'error' }, { write: (line) => lines.push(line) }), access: () => {} },
  });
  const { listen } = await gateway.start();
  const get = (path: string, headers: Record<string, string> = { Authorization: `Bearer ${key.secret}` }) =>
    fetch(`http://127.0.0.1:${listen.port}/v1${path}`, { headers });

  try {
    await expect(get('/pets')).rejects.toThrow('fetch failed');
    await expect(get('/pets', {})).rejects.toThrow('fetch failed');
    expect((await get('/pets/1')).status).toBe(200);
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      Array.from({ length: 4 }, () =>
        expect.objectContaining({
          msg: 'a bug in the request path',
          err: expect.objectContaining({ message: expect.stringContaining('X-Stability') }),
        }),
      ),
    );
  } finally {
    await gateway.drain({ graceMs: 0 });
    await backend.close();
  }
});
