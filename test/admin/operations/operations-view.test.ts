import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { relative } from '../../../gateway/shared/words/figures.js';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { settingsOf } from '../../support/settings-of.ts';

const { token, entry } = makeToken('read');
const dayMs = 86_400_000;
const sunsetMs = Date.parse('2030-12-05T00:00:00Z');

it.each([
  ['ten and a half days before', 10.5 * dayMs, 10, 'in 10 days'],
  ['ten days before', 10 * dayMs, 10, 'in 10 days'],
  ['an hour before', dayMs / 24, 0, 'in 1 h'],
  ['two and a half days after', -2.5 * dayMs, -3, '2 days ago'],
])('the admin API gives the same days until a sunset as the pages, %s', async (_, leftMs, days, shown) => {
  const nowMs = sunsetMs - leftMs;
  const operation =
    '{ operationId: old, deprecated: true, x-deprecated-since: 2026-11-20, x-deprecated-sunset: 2030-12-05 }';
  const settings = await settingsOf(
    {
      upstream: { url: 'http://127.0.0.1:1' },
      api: './api.yaml',
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    },
    { 'api.yaml': `paths: { /old: { get: ${operation} } }\n` },
  );
  const log = { logger: pino({ level: 'silent' }), access: () => {} };
  const gateway = createGateway({ settings, log, nowMs: () => nowMs });
  const { admin } = await gateway.start();
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  const { body } = await askAdmin(admin.port, '/api/v1/operations', { token });
  expect(body.operations[0].requests).toBe(0);
  const early = await askAdmin(admin.port, '/api/v1/operations?from=2026-01-01&to=2026-01-02', { token });
  expect(early.body.operations[0]).not.toHaveProperty('requests');
  expect(body.operations[0].deprecation.daysToSunset).toBe(days);
  expect(relative(sunsetMs, nowMs)).toBe(shown);
});
