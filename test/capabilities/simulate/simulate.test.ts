import { expect, it } from 'vitest';
import { makeKey } from '../../support/gateway-process.ts';
import { at, minuteMs, noon, startSimulating } from './simulate-fixture.ts';

it('a simulation names the keys that would have been refused, their requests and the first time, and shows that it reproduces the record', async () => {
  const [acme, calm, paid] = [
    makeKey({ id: 'acme', plan: 'free' }),
    makeKey({ id: 'calm', plan: 'free' }),
    makeKey({ id: 'paid', plan: 'paid' }),
  ];
  const gateway = await startSimulating({
    plans: { free: { perMinute: 6, perDay: 20 }, paid: { perMinute: 100 } },
    keys: [acme.entry, calm.entry, paid.entry],
  });
  await gateway.send(acme.secret, 0, 8);
  await gateway.send(acme.secret, 1, 5);
  await gateway.send(calm.secret, 2, 5);
  await gateway.send(paid.secret, 2, 50);

  const verdict = await gateway.simulate({ plans: { free: { perMinute: 3 } }, minutesOf: 'acme' });
  expect(verdict).toMatchObject({
    source: 'record',
    to: new Date(noon + 2 * minuteMs).toISOString(),
    reproduced: { recordedRefusals: 2, replayedRefusals: 2, minutesThatDiffer: 0, differences: [] },
    totals: { keys: 2, offered: 18, refusedNow: 2, refusedThen: 9, newlyLimitedKeys: 1, freedKeys: 0 },
    plans: [{ name: 'free', offered: 18, refusedNow: 2, refusedThen: 9 }],
    keys: [
      {
        id: 'acme',
        plan: 'free',
        offered: 13,
        refusedNow: 2,
        refusedThen: 7,
        firstRefusedAt: at(0),
        censoredMinutes: 1,
      },
      {
        id: 'calm',
        plan: 'free',
        offered: 5,
        refusedNow: 0,
        refusedThen: 2,
        firstRefusedAt: at(2),
        censoredMinutes: 0,
      },
    ],
    minutes: [
      { at: at(0), offered: 8, admittedNow: 6, admittedThen: 3 },
      { at: at(1), offered: 5, admittedNow: 5, admittedThen: 3 },
    ],
  });
  expect(verdict.next).toBeUndefined();

  const freed = await gateway.simulate({ plans: { free: { perMinute: null } } });
  expect(freed.totals).toMatchObject({ refusedNow: 2, refusedThen: 0, freedKeys: 1 });
  // A key's own edit overrides the edit of its plan. The period starts with the second minute.
  const own = await gateway.simulate({
    plans: { free: { perMinute: 1 } },
    keys: { acme: { perMinute: 4, perDay: 8 } },
    from: at(1),
  });
  expect(own.keys).toMatchObject([
    { id: 'calm', refusedThen: 4 },
    { id: 'acme', offered: 5, refusedThen: 3 },
  ]);
  expect((await gateway.simulate({})).totals).toMatchObject({ keys: 3, offered: 68, refusedThen: 2 });
  expect((await gateway.simulate({ plan: 'paid' })).totals).toMatchObject({ keys: 1, offered: 50 });
});

it('a simulation gives bounds when bans depend on the order of requests', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const gateway = await startSimulating({
    plans: { free: { perMinute: 2 } },
    keys: [key.entry],
    bans: { after: 3, within: '60s', for: '120s', max: '1h' },
  });
  await gateway.send(key.secret, 0, 9);
  await gateway.send(key.secret, 1, 4);
  const tried = { plans: { free: { perMinute: 3 } } };
  const { keys, reproduced, minutes } = await gateway.simulate({ ...tried, minutesOf: 'acme' });
  // In the record, the window refuses two requests before the key is banned. Under a limit of three requests a minute, a ban is possible
  // but not certain.
  expect(reproduced).toMatchObject({ recordedRefusals: 2, replayedRefusals: 2, minutesThatDiffer: 0 });
  expect(keys).toMatchObject([
    { offered: 13, refusedNow: 11, refusedThen: 9, refusedThenMin: 7, refusedThenMax: 10 },
  ]);
  expect(minutes).toMatchObject([{ admittedThen: 3 }, { admittedThen: 1 }]);
  // A simulation with the current limits reproduces the recorded decisions and bans.
  const same = await gateway.simulate({ minutesOf: 'acme' });
  expect(same.keys).toMatchObject([{ refusedNow: 11, refusedThen: 11 }]);
  expect(same.totals).toMatchObject({ refusedThenMin: 11, refusedThenMax: 11 });
});

it('a simulation omits a recorded ban that cannot begin under the edited limits', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const gateway = await startSimulating({
    plans: { free: { perMinute: 5 } },
    keys: [key.entry],
    bans: { after: 3 },
  });
  await gateway.send(key.secret, 0, 20);
  const { keys, minutes } = await gateway.simulate({
    keys: { acme: { perMinute: 100 } },
    minutesOf: 'acme',
  });
  expect(keys).toEqual([
    { id: 'acme', plan: 'free', offered: 20, refusedNow: 15, refusedThen: 0, censoredMinutes: 1 },
  ]);
  expect(minutes).toEqual([{ at: at(0), offered: 20, admittedNow: 5, admittedThen: 20 }]);
});

it('a simulation replays the minutes before an edit under the limits before the edit', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const gateway = await startSimulating({ plans: { free: { perMinute: 5 } }, keys: [key.entry] });
  await gateway.send(key.secret, 0, 8);
  await gateway.send(key.secret, 10, 1);
  await gateway.reload({ plans: { free: { perMinute: 4 } } });
  await gateway.send(key.secret, 11, 8);
  const { reproduced, totals } = await gateway.simulate({});
  expect(reproduced).toEqual({
    recordedRefusals: 7,
    replayedRefusals: 7,
    minutesThatDiffer: 0,
    differences: [],
  });
  expect(totals).toMatchObject({ offered: 17, refusedNow: 7, refusedThen: 7 });
  const other = await gateway.simulate({ plans: { free: { perMinute: 6 } } });
  expect(other.totals).toMatchObject({ offered: 17, refusedNow: 7, refusedThen: 4 });
});

it('a simulation names the minute in which an edit took effect, because one part of it had other limits', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const gateway = await startSimulating({ plans: { free: { perMinute: 5 } }, keys: [key.entry] });
  await gateway.send(key.secret, 0, 8);
  await gateway.reload({ plans: { free: { perMinute: 4 } } });
  await gateway.send(key.secret, 1, 8);
  const { reproduced } = await gateway.simulate({});
  expect(reproduced).toMatchObject({
    recordedRefusals: 7,
    replayedRefusals: 8,
    minutesThatDiffer: 1,
    differences: [{ at: at(0), keys: 1, of: ['acme'], recordedRefusals: 3, replayedRefusals: 4 }],
  });
  expect(reproduced.differences[0].why).toMatch(
    /^An edit took effect within the minute or shortly before, at .*: Free 5 → 4 a minute\.$/,
  );
});

it('a simulation replays a grant, and the plan that a key had at each time', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const plans = { free: { perMinute: 5 }, pro: { perMinute: 20 } };
  const gateway = await startSimulating({ plans, keys: [key.entry] });
  await gateway.send(key.secret, 0, 8);
  await gateway.send(key.secret, 9, 0);
  await gateway.grant('acme', { perMinute: 10 }, at(10), at(12));
  await gateway.send(key.secret, 10, 12);
  await gateway.send(key.secret, 12, 6);
  await gateway.send(key.secret, 20, 0);
  await gateway.reload({ plans, keys: [{ ...key.entry, plan: 'pro' }] });
  await gateway.send(key.secret, 21, 30);
  expect((await gateway.simulate({})).reproduced).toEqual({
    recordedRefusals: 3 + 2 + 1 + 10,
    replayedRefusals: 3 + 2 + 1 + 10,
    minutesThatDiffer: 0,
    differences: [],
  });
  // An edit of the present plan holds in the whole period, and the grant also after an edit.
  const ofPro = await gateway.simulate({ plans: { pro: { perMinute: 4 } } });
  expect(ofPro.totals).toMatchObject({
    refusedNow: 16,
    refusedThen: 4 + 2 + 2 + 26,
    keysGranted: 1,
    keysChanged: 1,
  });
  const later = await gateway.simulate({ from: at(15) });
  expect(later.totals).toMatchObject({ offered: 30, keysGranted: 0, keysChanged: 1 });
});

it('a simulation blames no edit that has nothing to do with the keys of the minute', async () => {
  const [key, other] = [makeKey({ id: 'acme', plan: 'free' }), makeKey({ id: 'other', plan: 'pro' })];
  const first = { free: { perMinute: 5 }, pro: { perMinute: 50 } };
  const gateway = await startSimulating({ plans: first, keys: [key.entry, other.entry] });
  await gateway.send(key.secret, 0, 8);
  await gateway.send(key.secret, 5, 1);
  await gateway.reload({ plans: { ...first, pro: { perMinute: 40 } } });
  await gateway.send(key.secret, 10, 1);
  const edited = { free: { perMinute: 4 }, pro: { perMinute: 40 } };
  await gateway.reload({ plans: edited });
  await gateway.send(key.secret, 11, 1);
  await gateway.send(key.secret, 12, 9);
  await gateway.reload({ plans: { ...edited, free: { perMinute: 3 } } });
  await gateway.reload({ plans: { free: { perMinute: 3 }, pro: { perMinute: 30 } }, bans: { after: 90 } });
  const { differences } = (await gateway.simulate({})).reproduced;
  expect(differences).toMatchObject([{ at: at(12) }]);
  expect(differences[0].why).toMatch(/, at .*: Free 4 → 3 a minute\.$/);
});

it('a simulation in parts continues where a part has ended, and each key is in one part', async () => {
  const keys = Array.from({ length: 25 }, (_, index) => makeKey({ id: `key-${index}`, plan: 'free' }));
  const gateway = await startSimulating(
    { plans: { free: { perMinute: 5 } }, keys: keys.map((one) => one.entry) },
    { simulationTimeoutMs: 0 },
  );
  for (const { secret } of keys) await gateway.send(secret, 0, 2);
  const seen: string[] = [];
  let after: string | undefined;
  do {
    const part = await gateway.simulate({ plans: { free: { perMinute: 1 } }, after });
    expect(part).toMatchObject({ activeKeys: 25, examinedKeys: part.keys.length });
    seen.push(...part.keys.map(({ id }: { id: string }) => id));
    after = part.next;
  } while (after !== undefined);
  expect(seen.sort()).toEqual(keys.map(({ entry: { id } }) => id).sort());
});

it('a simulation of a period that is no longer on record has no requests', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const gateway = await startSimulating({ plans: { free: { perMinute: 5 } }, keys: [key.entry] });
  await gateway.send(key.secret, 0, 8);
  const period = { from: '2001-01-01', to: '2001-01-02' };
  const found = await gateway.simulate({ ...period, plans: { free: { perMinute: 2 } } });
  expect(found).toMatchObject({ totals: { keys: 0, offered: 0 }, plans: [] });
  expect(found.from <= found.to).toBe(true);
  expect(Date.parse(found.minutesSinceAt)).toBeGreaterThan(Date.parse(found.to));
});

it('a simulation that cannot be replayed is refused with a sentence', async () => {
  const key = makeKey({ id: 'acme', plan: 'own', limits: { perDay: 5 } });
  const gateway = await startSimulating({
    plans: { free: { perMinute: 5 }, own: 'custom' },
    keys: [key.entry],
  });
  const refused = async (json: object) => (await gateway.refusal(json)).replace(/"/g, '');
  expect(await refused({ plans: { gold: { perDay: 1 } } })).toBe(
    '400 There is no plan gold; plans are: free, own.',
  );
  expect(await refused({ keys: { nobody: { perDay: 1 } } })).toBe('400 There is no key nobody.');
  for (const names of ['keys', 'plans']) {
    expect(await refused(JSON.parse(`{"${names}":{"__proto__":{"perDay":1}}}`))).toBe(
      `400 The member \`${names}.__proto__\` must not be \`__proto__\`, which JavaScript keeps for itself; write another name.`,
    );
  }
  expect(await refused({ plans: { free: { perMinute: null } } })).toMatch('would have no limit left');
  expect(await refused({ plans: { own: { perMinute: 1 } } })).toMatch('each key has its own limits');
  expect(await refused({ from: at(5), to: at(1) })).toMatch('`from` must not be later than `to`');
  expect(await refused({ config: 'gateway.yaml' })).toMatch('`config` is unknown');
  expect(await refused({ plans: { free: { perMinute: 0 } } })).toMatch('a whole number from 1');
});

it('a simulation replays each minute under the limits that its plan had then', async () => {
  const key = makeKey({ id: 'acme', plan: 'free' });
  const changes = [{ from: at(2), perMinute: 3, perMonth: 1_000 }];
  const gateway = await startSimulating({ plans: { free: { perMinute: 6, changes } }, keys: [key.entry] });
  await gateway.send(key.secret, 0, 8);
  // The test moves the clock past the date of the scheduled plan change, but no timer fires. The reload therefore applies the plan change.
  await gateway.send(key.secret, 2, 0);
  await gateway.reload({});
  await gateway.send(key.secret, 2, 5);
  await gateway.send(key.secret, 4, 1);

  const found = await gateway.simulate({});
  expect(found.reproduced).toEqual({
    recordedRefusals: 4,
    replayedRefusals: 4,
    minutesThatDiffer: 0,
    differences: [],
  });
  const other = await gateway.simulate({ plans: { free: { perMinute: 4 } } });
  expect(other.totals).toMatchObject({ keys: 1, offered: 14, refusedNow: 4, refusedThen: 5 });
  expect(other.keys).toMatchObject([{ id: 'acme', firstRefusedAt: at(0) }]);
});
