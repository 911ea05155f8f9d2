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

it('outages and marks in charts name kinds of events', () => {
  const named = [...Object.entries(beginOfOutage).flat(), ...Object.keys(chartMarks)];
  expect(named.filter((kind) => !eventKinds.some((one) => one === kind))).toEqual([]);
});
