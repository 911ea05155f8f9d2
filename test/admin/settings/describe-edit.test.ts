import { describe, expect, it } from 'vitest';
import { describeEdit } from '../../../gateway/admin/settings/describe-edit.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { capabilityCases } from '../../support/capability-cases.ts';
import { makeKey, plans } from '../../support/gateway-process.ts';
import { settingsOf } from '../../support/settings-of.ts';

const key = (id: string, members: object = {}) => makeKey({ id, ...members }).entry;
const upstream = { url: 'http://127.0.0.1:1' };
const acme = key('acme', { plan: 'free' });
const redis = { url: 'redis://10.0.0.1' };
const ofCapabilities = await capabilityCases();
const reports = (perMinute: number, ...operations: string[]) => ({
  operations: operations.length === 0 ? ['listPets'] : operations,
  perMinute,
});
const limited = (perMinute: number) => ({
  free: { perMinute, perDay: 2_000 },
  pro: { perMinute: 600 },
  own: 'custom',
});
const many = Array.from({ length: 300 }, (_, index) => key(`key-${index}`));

describe('the description of a reload', () => {
  it.each<[name: string, before: object, after: object, texts: string[]]>([
    ['nothing', {}, {}, []],
    [
      'a limit',
      { plans },
      { plans: { ...plans, free: { ...plans.free, perMinute: 50 } } },
      ['free 60 → 50 a minute'],
    ],
    [
      'a limit more and one less',
      { plans: { ...plans, free: { perMinute: 60 } } },
      { plans: { ...plans, free: { perDay: 5_000 } } },
      ['free 60 → no limit a minute, no limit → 5,000 a day'],
    ],
    ...ofCapabilities.flatMap(({ edits }) => edits ?? []),
    [
      'a trial',
      {
        plans: {
          ...plans,
          free: { perMinute: 60 },
          pro: { perDay: 9, trial: { perMinute: 40 } },
          old: { perDay: 5, trial: { perDay: 4 } },
        },
      },
      {
        plans: {
          ...plans,
          free: { perMinute: 60, trial: { perMinute: 40, perDay: 1_000 } },
          pro: { perDay: 9, trial: { perMinute: 30, perDay: 8 } },
          old: { perDay: 5 },
        },
      },
      [
        'free trial: nothing → 40 a minute, 1,000 a day',
        'old trial: 4 a day → nothing',
        'pro trial 40 → 30 a minute, trial no limit → 8 a day',
      ],
    ],
    [
      'plans',
      { plans: { ...plans, old: { perDay: 5 }, own: { perDay: 5 } } },
      { plans: { ...plans, new: { perDay: 5 }, own: 'custom' } },
      ['own now has separate limits for each key, 5 → no limit a day', 'plan new is new', 'plan old is gone'],
    ],
    [
      'an upstream, and a setting',
      { upstream: { url: 'http://10.0.0.1:80' } },
      { upstream: { url: 'http://10.0.0.2:80' }, bans: { after: 50 } },
      ['upstream default url: http://10.0.0.1 → http://10.0.0.2', 'bans.after: 100 → 50'],
    ],
    [
      'a password in a URL: no part of it is in the text',
      { redis: { url: 'redis://:hunter2@10.0.0.1' } },
      { redis: { url: 'redis://:hunter3@10.0.0.2' } },
      ['redis.url: redis://***@10.0.0.1 → redis://***@10.0.0.2'],
    ],
    [
      'the groups of a plan: their limits and operations',
      { plans: { free: { perMinute: 60, groups: { a: reports(5), old: reports(5) } } } },
      { plans: { free: { perMinute: 60, groups: { a: reports(6, 'getPet'), new: reports(7) } } } },
      [
        'free 5 → 6 a minute for the group a, 5 → no limit a minute for the group old, no limit → 7 a minute for the group new, operations of the group a: ["listPets"] → ["getPet"], operations of the group old: ["listPets"] → nothing, operations of the group new: nothing → ["listPets"]',
      ],
    ],
    [
      'the first group of a plan',
      { plans: { free: { perMinute: 60 } } },
      { plans: { free: { perMinute: 60, groups: { a: reports(5) } } } },
      ['free no limit → 5 a minute for the group a, operations of the group a: nothing → ["listPets"]'],
    ],
    [
      'the groups of a trial',
      { plans: { free: { perMinute: 60, trial: { perMinute: 50 } } } },
      { plans: { free: { perMinute: 60, trial: { perMinute: 50, groups: { a: reports(5) } } } } },
      [
        'free trial operations of the group a: nothing → ["listPets"], trial no limit → 5 a minute for the group a',
      ],
    ],
    [
      'only the operations of a group of a scheduled change',
      {
        plans: {
          free: { perMinute: 60, changes: [{ from: '2100-01-01', perMinute: 9, groups: { a: reports(5) } }] },
        },
      },
      {
        plans: {
          free: {
            perMinute: 60,
            changes: [{ from: '2100-01-01', perMinute: 9, groups: { a: reports(5, 'getPet') } }],
          },
        },
      },
      [
        'free changes: from 2100-01-01: 9 a minute, 5 a minute for the group a → from 2100-01-01: 9 a minute, 5 a minute for the group a with other operations in groups',
      ],
    ],
    [
      'the groups of a key',
      { keys: [{ ...acme, groups: { old: reports(5) } }] },
      { keys: [{ ...acme, groups: { new: reports(6) } }] },
      [
        'key acme 5 → no limit a minute for the group old, no limit → 6 a minute for the group new, operations of the group old: ["listPets"] → nothing, operations of the group new: nothing → ["listPets"]',
      ],
    ],
    ['a key added', { keys: [] }, { keys: [acme] }, ['key acme added']],
    ['a key disabled', { keys: [acme] }, { keys: [{ ...acme, disabled: true }] }, ['key acme disabled']],
    [
      'a key changed: its plan and limits, and of all else the name of the member alone',
      { keys: [acme] },
      { keys: [{ ...key('acme', { plan: 'enterprise' }), name: 'Acme → gone', limits: { perMinute: 5 } }] },
      ['key acme plan free → enterprise (60 → 5 a minute, 1,000 → no limit a day), secrets, name'],
    ],
    [
      'a key from its own limits to those of a plan, which the same edit changes',
      { plans: limited(60), keys: [{ ...acme, plan: 'own', limits: { perMinute: 20, perDay: 3_000 } }] },
      { plans: limited(65), keys: [acme] },
      ['free 60 → 65 a minute', 'key acme plan own → free (20 → 65 a minute, 3,000 → 2,000 a day)'],
    ],
    [
      'the own limits of a key',
      { plans: limited(60), keys: [{ ...acme, plan: 'own', limits: { perMinute: 20, perDay: 3_000 } }] },
      { plans: limited(60), keys: [{ ...acme, plan: 'own', limits: { perMinute: 90 } }] },
      ['key acme 20 → 90 a minute, 3,000 → no limit a day'],
    ],
    [
      'a key with a group of its own, in place of the group of its plan',
      { plans: { free: { perMinute: 60, groups: { a: reports(5) } } }, keys: [acme] },
      {
        plans: { free: { perMinute: 60, groups: { a: reports(5) } } },
        keys: [{ ...acme, groups: { a: reports(9) } }],
      },
      ['key acme 5 → 9 a minute for the group a'],
    ],
    [
      'a key whose past change of its plan becomes its plan',
      { plans: limited(60), keys: [{ ...acme, changes: [{ from: '2020-01-01', plan: 'pro' }] }] },
      { plans: limited(60), keys: [{ ...acme, plan: 'pro', name: 'Acme' }] },
      ['key acme later plan withdrawn, name'],
    ],
    [
      'many keys: some are named, and all are counted',
      { keys: many },
      { keys: [acme] },
      ['key acme added', 'keys key-0, key-1, key-10, key-100, key-101 and 295 more removed'],
    ],
  ])('%s', async (_, before, after, texts) => {
    const settings = await Promise.all(
      [before, after].map((each) => settingsOf({ upstream, redis, ...each })),
    );
    const [from, to] = settings;
    if (from === undefined || to === undefined) throw new Error('two were loaded');
    const bounds = { ...defaultBounds, editTextCharsMax: 1_000 };
    expect((await describeEdit(from, to, bounds)).edits).toEqual(texts);
  });
});

it('the limits before an edit of the groups of a key are the groups that it had', async () => {
  const groupsOf = (perDay: number) => ({ reports: { operations: ['listPets'], perDay } });
  const settings = await Promise.all(
    [20, 30].map((perDay) => settingsOf({ upstream, keys: [{ ...acme, groups: groupsOf(perDay) }] })),
  );
  const [from, to] = settings;
  if (from === undefined || to === undefined) throw new Error('two were loaded');
  expect((await describeEdit(from, to, defaultBounds)).limitsBefore).toEqual({
    plans: undefined,
    keys: { acme: { plan: 'free', limits: undefined, groups: groupsOf(20) } },
  });
  expect((await describeEdit(from, from, defaultBounds)).limitsBefore).toBeUndefined();
});

it('the removed keys of an edit have a list of their own', async () => {
  const settings = (keys: object[]) => settingsOf({ upstream, plans, keys });
  const [one, other] = [key('one'), key('other')];
  const edit = await describeEdit(await settings([acme, one]), await settings([one, other]), defaultBounds);
  expect(edit).toMatchObject({ keys: ['acme', 'other'], removedKeys: ['acme'] });
  const added = await describeEdit(await settings([]), await settings([one]), defaultBounds);
  expect(added.removedKeys).toBeUndefined();
});

it.each<[name: string, before: object[], after: object[], keys: string[] | undefined]>([
  ['added', [], [acme], ['acme']],
  ['removed', [acme], [], ['acme']],
  ['disabled', [acme], [{ ...acme, disabled: true }], ['acme']],
  ['enabled', [{ ...acme, disabled: true }], [acme], ['acme']],
  ['with another plan', [acme], [{ ...acme, plan: 'pro' }], ['acme']],
  ['with a later plan', [acme], [{ ...acme, changes: [{ from: '2100-01-01', plan: 'pro' }] }], ['acme']],
  ['with a name', [acme], [{ ...acme, name: 'Acme' }], ['acme']],
  ['with another secret', [acme], [key('acme', { plan: 'free' })], ['acme']],
  ['with addresses', [acme], [{ ...acme, addresses: ['10.0.0.1'] }], ['acme']],
  ['with other operations', [acme], [{ ...acme, operations: ['listPets'] }], ['acme']],
  ['of many', many, [acme], ['acme', ...many.map(({ id }) => String(id)).sort()].slice(0, 200)],
  ['unchanged', [acme], [acme], undefined],
])('an edit is found by a key that is %s', async (_, before, after, keys) => {
  const [from, to] = await Promise.all([before, after].map((keys) => settingsOf({ upstream, plans, keys })));
  if (from === undefined || to === undefined) throw new Error('two were loaded');
  expect((await describeEdit(from, to, defaultBounds)).keys).toEqual(keys);
});
