import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { makeEventBody } from '../../../gateway/capabilities/webhooks/events/event-body.ts';
import { exampleNotices, kindsByType, webhookTypeOf } from '../../../gateway/fleet/kinds/kinds.ts';
import { webhookEventTypes } from '../../../gateway/shared/words/event-names.js';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const nowMs = Date.now();
const folder = new URL('../../../gateway/capabilities/', import.meta.url);
const pages = globSync('*/README.md', { cwd: folder }).map((page) =>
  readFileSync(new URL(page, folder), 'utf8'),
);
const documented = [...pages.join('\n').matchAll(/^\| `([\w.]+)` \| .* \| `(\{.*\})` \|$/gm)].map(
  ([, type, example]) => ({
    type,
    example: JSON.parse(example ?? ''),
  }),
);

it('the pages of webhooks and of the capabilities that add a type have a row for each type', () => {
  expect(documented.map(({ type }) => type).toSorted()).toEqual(webhookEventTypes.toSorted());
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
