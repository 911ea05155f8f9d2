import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { makeEventBody } from '../../gateway/capabilities/webhooks/events/event-body.ts';
import { eventKinds, exampleNotices, kindsByType, webhookTypeOf } from '../../gateway/fleet/kinds/kinds.ts';
import { beginOfOutage, chartMarks, webhookEventTypes } from '../../gateway/shared/words/event-names.js';
import { tunedBounds } from '../support/tuned-bounds.ts';

const nowMs = Date.now();
const page = readFileSync(new URL('../../gateway/capabilities/webhooks/README.md', import.meta.url), 'utf8');
const documented = [...page.matchAll(/^\| `([\w.]+)` \| .* \| `(\{.*\})` \|$/gm)].map(
  ([, type, example]) => ({
    type,
    example: JSON.parse(example ?? ''),
  }),
);

it('each type of event has one example, and the page about webhooks has a row for each type', () => {
  expect(exampleNotices(nowMs).map(webhookTypeOf)).toEqual(webhookEventTypes);
  expect(documented.map(({ type }) => type)).toEqual(webhookEventTypes);
});

it.each(exampleNotices(nowMs).map((notice) => [webhookTypeOf(notice), notice] as const))(
  'the example of %s matches its schema, and has the members of the example in the documentation',
  (type, notice) => {
    const body = makeEventBody(notice, nowMs, tunedBounds({}));
    expect(body?.type).toBe(type);
    const data = JSON.parse(JSON.stringify(body?.data));
    const schema = kindsByType.get(type)?.webhook?.data(z);
    expect(schema?.safeParse(data).error).toBeUndefined();
    const { text, ...others } = data;
    expect(text).toMatch(/\S/);
    const row = documented.find((one) => one.type === type);
    expect(schema?.safeParse({ ...row?.example, text }).error).toBeUndefined();
    expect(Object.keys(others).toSorted()).toEqual(Object.keys(row?.example).toSorted());
  },
);

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
