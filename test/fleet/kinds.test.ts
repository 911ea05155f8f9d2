import { expect, it } from 'vitest';
import * as z from 'zod';
import { eventKinds, exampleNotices, kindsByType, webhookTypeOf } from '../../gateway/fleet/kinds/kinds.ts';
import { beginOfOutage, chartMarks, webhookEventTypes } from '../../gateway/shared/words/event-names.js';

it('each type of event has one example', () => {
  expect(exampleNotices(Date.now()).map(webhookTypeOf)).toEqual(webhookEventTypes);
});

it('a body with a member that the schema does not have does not match', () => {
  const schema = kindsByType.get('usage.paused')?.webhook?.data(z);
  const data = { reason: 'Redis is full', text: 'The usage record pauses: Redis is full.' };
  expect(schema?.safeParse(data).success).toBe(true);
  expect(schema?.safeParse({ ...data, secret: 'x' }).success).toBe(false);
});

it.each([
  ['update', { name: 'Alice', disabled: true }, 'key.revoked'],
  ['update', { name: 'Alice', disabled: false }, undefined],
  ['update', { name: 'Alice' }, undefined],
  ['revoke', { disabled: true }, 'key.revoked'],
] as const)('the change %s to %j is the event %s', (action, after, type) => {
  expect(webhookTypeOf({ kind: 'key_changed', key: 'a', by: 'alice', action, after })).toBe(type);
});

it('outages and marks in charts name kinds of events', () => {
  const named = [...Object.entries(beginOfOutage).flat(), ...Object.keys(chartMarks)];
  expect(named.filter((kind) => !eventKinds.some((one) => one === kind))).toEqual([]);
});
