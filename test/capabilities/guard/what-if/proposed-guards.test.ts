import { expect, it } from 'vitest';
import { makeKey } from '../../../support/gateway-process.ts';
import { noon, startGrouped, startSimulating } from '../../simulate/simulate-fixture.ts';

it('a simulation of smaller limits proposes a guard, which would not have reverted the plan in the busiest ten minutes', async () => {
  const keys = Array.from({ length: 10 }, (_, index) => makeKey({ id: `key-${index}`, plan: 'free' }));
  const gateway = await startSimulating({
    plans: { free: { perMinute: 30, perDay: 900 }, spare: { perDay: 5 } },
    keys: keys.map((one) => one.entry),
  });
  for (const { secret } of keys) await gateway.send(secret, 0, 12);
  for (const { secret } of keys) await gateway.send(secret, 20, 5);
  const tried = (edit: object) => gateway.simulate({ plans: { free: edit } });
  const until = new Date(noon + 10 * 86_400_000).toISOString().slice(0, 10);
  const guard = (percent: number) =>
    `guard: { before: { perMinute: 30, perDay: 900 }, refusedAtMost: ${percent} %, until: ${until} }`;
  // In the busiest ten minutes the limit refuses 30 of 120 requests, but in the whole period only 30 of 170.
  expect(await tried({ perMinute: 9 })).toMatchObject({
    plans: [{ name: 'free', refusedThen: 30, guardShare: 0.25 }],
    guards: { free: guard(32) },
  });
  expect(await tried({ perHour: 100 })).toMatchObject({
    plans: [{ refusedThen: 0, guardShare: 0 }],
    guards: { free: guard(1) },
  });
  const larger = await tried({ perMinute: 40, perDay: null });
  expect([larger.plans[0].guardShare, larger.guards]).toEqual([0, {}]);
  const present = await gateway.simulate({});
  expect([present.plans[0].guardShare, present.guards]).toEqual([undefined, {}]);
  // A plan without requests gets a proposal too.
  const unused = await gateway.simulate({ plans: { spare: { perDay: 4 } } });
  expect(unused).toMatchObject({
    plans: [],
    guards: { spare: `guard: { before: { perDay: 5 }, refusedAtMost: 1 %, until: ${until} }` },
  });
});

it('a simulation of a period that is no longer on record proposes a guard with the smallest share', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const gateway = await startSimulating({ plans: { free: { perMinute: 5 } }, keys: [key.entry] });
  await gateway.send(key.secret, 0, 8);
  const period = { from: '2001-01-01', to: '2001-01-02' };
  const found = await gateway.simulate({ ...period, plans: { free: { perMinute: 2 } } });
  expect(found).toMatchObject({ totals: { keys: 0, offered: 0 }, plans: [] });
  expect(found.guards.free).toContain('refusedAtMost: 1 %');
});

it('a simulation that edits very many plans proposes no guard', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const plans = { free: { perMinute: 5 }, spare: { perMinute: 5 } };
  const gateway = await startSimulating({ plans, keys: [key.entry] }, { simulationGuardsMax: 1 });
  await gateway.send(key.secret, 0, 8);
  const smaller = { perMinute: 2 };
  const both = await gateway.simulate({ plans: { free: smaller, spare: smaller } });
  expect([both.plans[0].guardShare, both.guards]).toEqual([undefined, {}]);
  const one = await gateway.simulate({ plans: { free: smaller } });
  expect([one.plans[0].guardShare, Object.keys(one.guards)]).toEqual([0, ['free']]);
});

it('the share of refusals for a guard covers the refusals of groups, also in minutes in which a group refused every request', async () => {
  const gateway = await startGrouped({
    perMinute: 1_000,
    groups: {
      lists: { operations: ['listPets'], perHour: 30 },
      gets: { operations: ['getPet'], perHour: 5 },
    },
  });
  await gateway.send(0, 60);
  await gateway.send(1, 50);
  await gateway.send(2, 10, '/v1/pets/1');
  const edit = { groups: { lists: { perHour: 20 }, gets: { perHour: 2 } } };
  const { plans, guards } = await gateway.simulate({ plans: { free: edit } });
  expect(plans).toMatchObject([{ offered: 120, refusedThen: 98, guardShare: 98 / 120 }]);
  // Only a guard with a share of 100 % would exceed the simulated share, and it would never revert the edit.
  expect(guards).toEqual({});
  const both = await gateway.simulate({ plans: { free: { ...edit, perHour: 1 } } });
  expect(both.plans).toMatchObject([{ refusedThenMin: 119, refusedThenMax: 120, guardShare: 1 }]);
});

it('the share for a guard of a group leaves out the requests of other operations, as the guard does', async () => {
  const gateway = await startGrouped({
    perMinute: 1_000,
    groups: { lists: { operations: ['listPets'], perMinute: 90 } },
  });
  await gateway.send(0, 100);
  await gateway.send(0, 300, '/v1/pets/1');
  const { plans } = await gateway.simulate({ plans: { free: { groups: { lists: { perMinute: 80 } } } } });
  expect(plans).toMatchObject([{ offered: 400, refusedThen: 20, guardShare: 0.2 }]);
});

it('a new group gets no proposal of a guard, because the share of its refusals is not on record', async () => {
  const gateway = await startGrouped({ perMinute: 100 });
  const group = { operations: ['null', 'a b'], perMinute: 3 };
  const { guards } = await gateway.simulate({ plans: { free: { groups: { true: group } } } });
  expect(guards).toEqual({});
});
