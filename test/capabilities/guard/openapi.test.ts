import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { createGateway } from '../../support/create-gateway.ts';
import { faultsOf, instantsOutOfPlace } from '../../support/described-replies.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

it('a gateway answers as described after a revert, member by member', async () => {
  const { token, entry } = makeToken('write');
  const key = makeKey({ plan: 'guarded' });
  const guard = { before: { perDay: 100 }, refusedAtMost: '50 %', until: '2100-01-01' };
  const gateway = createGateway({
    settings: await settingsOf({
      upstream: { url: 'http://127.0.0.1:1' },
      plans: { guarded: { perDay: 1, guard } },
      keys: [key.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
      redis: { url: redisUrl(), prefix: freshPrefix() },
    }),
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds({ ...patientStore, simulationTimeoutMs: 60_000, guardRequestsMin: 2 }),
  });
  const { listen, admin } = await gateway.start();
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  // One refused request of two reverts the plan.
  for (let request = 0; request < 2; request++) {
    const headers = { authorization: `Bearer ${key.secret}` };
    await (await fetch(`http://127.0.0.1:${listen.port}/v1/pets`, { headers })).arrayBuffer();
  }
  const ask = (path: string, method = 'GET', json?: object) =>
    askAdmin(admin.port, `/api/v1${path}`, { token, method, json });
  await until(
    'the guard reverts the plan',
    async () => (await askAdmin(admin.port, '/readyz')).body.revertedPlans.length === 1,
  );
  await expect
    .poll(async () => (await ask('/changes')).body.changes)
    .toContainEqual(expect.objectContaining({ action: 'plan.reverted' }));
  await expect
    .poll(async () => (await ask('/events')).body.events)
    .toContainEqual(expect.objectContaining({ kind: 'plan_reverted' }));
  const edit = { plans: { guarded: { perDay: 50 } } };
  for (const [method, path, template, json] of [
    ['GET', '/plans', '/plans'],
    ['GET', '/changes', '/changes'],
    ['GET', '/events', '/events'],
    ['GET', '/state', '/state'],
    ['GET', '/settings', '/settings'],
    ['POST', '/simulate', '/simulate', edit],
    ['POST', '/plans/guarded/retry', '/plans/{name}/retry'],
    // After the retry, the guard watches again.
    ['GET', '/plans', '/plans'],
    ['GET', '/changes', '/changes'],
    ['GET', '/events', '/events'],
    ['POST', '/plans/gone/retry', '/plans/{name}/retry'],
  ] as const) {
    const reply = await ask(path, method, json);
    // The period of a simulation has the names of its request.
    const outOfPlace = path === '/simulate' ? [] : instantsOutOfPlace(reply.body);
    expect([path, reply.status, faultsOf(reply, method, template), outOfPlace]).toEqual([
      path,
      path.includes('gone') ? 404 : 200,
      [],
      [],
    ]);
  }
});
