import { expect, it } from 'vitest';
import { startGrouped } from './simulate-fixture.ts';

const lists = { operations: ['listPets'], perMinute: 4 };

it('a simulation of a group alone is exact, and leaves out no request of the plan', async () => {
  const gateway = await startGrouped({ perMinute: 100, groups: { lists } });
  await gateway.send(0, 6);
  await gateway.send(0, 5, '/v1/pets/1');
  await gateway.send(1, 3);
  const recorded = { offered: 14, refusedNow: 2 };
  const ofEdit = async (group: object | null) => {
    const { totals, notReplayed } = await gateway.simulate({ plans: { free: { groups: { lists: group } } } });
    expect(notReplayed).toBeUndefined();
    return totals;
  };
  const exactly = (refused: number) => ({
    ...recorded,
    refusedThen: refused,
    refusedThenMin: refused,
    refusedThenMax: refused,
  });
  expect(await ofEdit({ perMinute: 1 })).toMatchObject(exactly(7));
  expect(await ofEdit({ perMinute: 4 })).toMatchObject(exactly(2));
  expect(await ofEdit({ perMinute: 5, perDay: 7 })).toMatchObject(exactly(2));
  expect(await ofEdit(null)).toMatchObject(exactly(0));
});

it('a request that a group no longer refuses may be refused by the plan, and the bounds include this', async () => {
  const gateway = await startGrouped({ perMinute: 6, groups: { lists } });
  await gateway.send(0, 10);
  const { totals } = await gateway.simulate({ plans: { free: { groups: { lists: { perMinute: 9 } } } } });
  // The plan admits 6 of the 10 requests, and the group admits 9.
  expect(totals).toMatchObject({ offered: 10, refusedNow: 6 });
  expect(totals.refusedThenMin).toBe(4);
  expect(totals.refusedThenMax).toBe(5);
});

it('a request that two limits would refuse is refused once, and the bounds include this', async () => {
  const gateway = await startGrouped({
    perMinute: 100,
    groups: {
      lists: { ...lists, perMinute: 50 },
      pets: { operations: ['getPet', 'listPets'], perMinute: 50 },
    },
  });
  await gateway.send(0, 5);
  const edit = { groups: { lists: { perMinute: 1 }, pets: { perMinute: 1 } } };
  const { totals } = await gateway.simulate({ plans: { free: { perMinute: 1, ...edit } } });
  expect(totals).toMatchObject({ offered: 5, refusedNow: 0, refusedThenMin: 4, refusedThenMax: 5 });
});

it('a group with other operations keeps its recorded refusals, and the response proposes a trial', async () => {
  const gateway = await startGrouped({ perMinute: 100, groups: { lists } });
  await gateway.send(0, 6);
  await gateway.send(0, 5, '/v1/pets/1');
  const { totals, notReplayed } = await gateway.simulate({
    plans: {
      free: {
        groups: {
          lists: { operations: ['listPets', 'getPet'] },
          gets: { operations: ['getPet'], perMinute: 3 },
        },
      },
    },
  });
  expect(totals).toMatchObject({ offered: 11, refusedNow: 2, refusedThen: 2 });
  const trial =
    'trial: { perMinute: 100, groups: { lists: { operations: [listPets, getPet], perMinute: 4 }, gets: { operations: [getPet], perMinute: 3 } } }';
  expect(notReplayed).toMatchObject([
    { plan: 'free', group: 'lists', requests: 11, trial },
    { plan: 'free', group: 'gets', requests: 5, trial },
  ]);
});

it('the response names the requests from before a group existed', async () => {
  const gateway = await startGrouped({ perMinute: 100 });
  await gateway.send(0, 6);
  await gateway.reload({ perMinute: 100, groups: { lists } });
  await gateway.send(70, 5);
  const { totals, notReplayed } = await gateway.simulate({
    plans: { free: { groups: { lists: { perMinute: 2 } } } },
  });
  expect(totals).toMatchObject({ offered: 11, refusedNow: 1, refusedThen: 3 });
  expect(notReplayed).toMatchObject([{ plan: 'free', group: 'lists', isPartly: true, requests: 6 }]);
});

it('an edit of a key may edit a group that the edit of its plan adds', async () => {
  const gateway = await startGrouped({ perMinute: 100 });
  await gateway.send(0, 6);
  const { notReplayed } = await gateway.simulate({
    plans: { free: { groups: { lists } } },
    keys: { acme: { groups: { lists: { perMinute: 2 } } } },
  });
  expect(notReplayed).toMatchObject([
    { plan: 'free', group: 'lists', requests: 6 },
    { key: 'acme', group: 'lists', requests: 6 },
  ]);
});

it('the error about an unknown group proposes the group that was probably meant', async () => {
  const gateway = await startGrouped({ perMinute: 100, groups: { lists } });
  const { message } = await gateway.simulate({ plans: { free: { groups: { list: { perMinute: 2 } } } } });
  expect(message).toBe(
    'The plan "free" has no group "list"; did you mean `lists`? A new group needs `operations`.',
  );
});

it('a proposed trial quotes names that YAML reads as another type', async () => {
  const gateway = await startGrouped({ perMinute: 100 });
  const group = { operations: ['null', 'a b'], perMinute: 3 };
  const { notReplayed } = await gateway.simulate({ plans: { free: { groups: { true: group } } } });
  expect(notReplayed[0].trial).toBe(
    'trial: { perMinute: 100, groups: { "true": { operations: ["null", "a b"], perMinute: 3 } } }',
  );
});
