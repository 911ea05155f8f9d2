import { expect, it } from 'vitest';
import * as z from 'zod';
import { makeEventBody } from '../../../gateway/capabilities/webhooks/events/event-body.ts';
import { exampleNotices, kindsByType, webhookTypeOf } from '../../../gateway/fleet/kinds/kinds.ts';
import { webhookEventTypes } from '../../../gateway/shared/words/event-names.js';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const nowMs = Date.now();

it('every type has an example', () => {
  const types = exampleNotices(nowMs).map(webhookTypeOf);
  expect(types.toSorted()).toEqual(webhookEventTypes.toSorted());
});

it.each(exampleNotices(nowMs).map((notice) => [webhookTypeOf(notice), notice] as const))(
  'the example of %s matches its schema',
  (type, notice) => {
    const body = makeEventBody(notice, nowMs, tunedBounds({}));
    expect(body?.type).toBe(type);
    const data = JSON.parse(JSON.stringify(body?.data));
    const schema = kindsByType.get(type)?.webhook?.data(z);
    expect(schema?.safeParse(data).error).toBeUndefined();
    expect(data.text).toMatch(/\S/);
  },
);
