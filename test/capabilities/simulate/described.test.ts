import { expect, it } from 'vitest';
import { faultsOf } from '../../support/described-replies.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { acme, startSimulating } from './simulate-fixture.ts';

it('answers POST /simulate as described, member by member', async () => {
  const { ask, send } = await startSimulating({
    plans: { free: { perMinute: 60, trial: { perMinute: 40 } } },
    keys: [acme.entry],
  });
  await send(acme.secret, 0, 3, '/v1/pets');
  await send(acme.secret, 2, 1, '/v1/pets');
  const reply = await ask({ plans: { free: { perMinute: 2, perDay: null } }, minutesOf: 'acme' });
  expect([reply.status, faultsOf(reply, 'POST', '/simulate')]).toEqual([200, []]);
  expect(reply.body).toMatchObject({
    totals: { refusedThen: 1 },
    minutes: [
      { offered: 3, admittedThen: 2 },
      { offered: 1, admittedThen: 1 },
    ],
  });
  const refused = await ask({ plans: { gold: { perMinute: 2 } } });
  expect([refused.status, faultsOf(refused, 'POST', '/simulate')]).toEqual([400, []]);
});

it('counts the members of a body before the schema checks it', async () => {
  const { ask } = await startSimulating({ plans: { free: { perMinute: 60 } }, keys: [acme.entry] });
  const { simulationMembersMax } = tunedBounds({});
  const keys = Object.fromEntries(Array.from({ length: simulationMembersMax }, (_, index) => [index, 0]));
  const { status, body } = await ask({ keys });
  expect([status, body.message]).toEqual([
    413,
    'The request body has too many members; at most 65536 are allowed, in all objects and lists together.',
  ]);
});
