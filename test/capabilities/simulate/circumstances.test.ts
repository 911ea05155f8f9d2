import { expect, it } from 'vitest';
import { readCircumstances } from '../../../gateway/capabilities/simulate/operators/circumstances.ts';
import type { RecordedChange } from '../../../gateway/fleet/changes.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';

const at = '2026-11-24T11:00:00.000Z';
const groups = { reports: { operations: ['createReport'], perDay: 20 } };

it.each([
  ['its plan', { plan: 'free' }, ['acme']],
  ['its limits', { limits: { perMinute: 5 } }, ['acme']],
  ['its groups', { groups }, ['acme']],
  ['its name', { name: 'Acme Ltd' }, []],
])('an edit of a key that changed %s explains differences of the keys %j', async (_, before, concerned) => {
  const change = {
    id: '1-0',
    at,
    process: 'p',
    processes: 1,
    action: 'update',
    by: 'alice',
    key: 'acme',
    before,
  };
  const found = await readCircumstances(
    {
      events: { read: async () => ({ events: [], isComplete: true }) },
      changes: { read: async () => ({ changes: [change as RecordedChange], isComplete: true }) },
      presence: { read: async () => ({ processes: [], isComplete: true, answeredBy: 'p' }) },
    },
    Date.parse(at),
    defaultBounds,
  );
  const keys = ['acme', 'globex'].map((id) => ({ id, plan: 'free' }));
  expect(
    keys.filter((key) => found.some((one) => 'concerns' in one && one.concerns(key))).map(({ id }) => id),
  ).toEqual(concerned);
});
