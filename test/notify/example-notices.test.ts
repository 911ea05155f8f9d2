import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { makeEventBody } from '../../gateway/notify/event-body.ts';
import { exampleNotices } from '../../gateway/notify/example-notices.ts';
import { webhookEventTypes } from '../../gateway/shared/model.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';

const nowMs = Date.now();
const page = readFileSync(new URL('../../gateway/notify/README.md', import.meta.url), 'utf8');

it.each(webhookEventTypes)(
  'the example of %s has the members of the example in the documentation',
  (type) => {
    const body = makeEventBody(exampleNotices(nowMs)[type], nowMs, tunedBounds({}));
    const [, documented = ''] = new RegExp(`^\\| \`${type}\` \\|.*\`(\\{.*\\})\` \\|$`, 'm').exec(page) ?? [];
    const { text, ...data } = Object(JSON.parse(JSON.stringify(body?.data)));
    expect(body?.type).toBe(type);
    expect(text).toMatch(/\S/);
    expect(Object.keys(data).toSorted()).toEqual(Object.keys(JSON.parse(documented)).toSorted());
  },
);
