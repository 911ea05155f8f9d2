import { describe, expect, it } from 'vitest';
import { traceIdOf, traceParentOf } from '../../gateway/observe/trace-id.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';

describe('traceParentOf', () => {
  it.each([
    [`00-${traceId}-${parentId}-01`, 1],
    [`00-${traceId}-${parentId}-fe`, 254],
    [`01-${traceId}-${parentId}-03-what-a-later-version-adds`, 3],
  ])('reads the ids and the flags of %s', (field, flags) => {
    expect(traceParentOf(field)).toEqual({ traceId, spanId: parentId, flags });
  });

  it.each([undefined, '', `00-${traceId}-${parentId}-1`, `00-${traceId}-${parentId}-0g`])(
    'finds none in %j',
    (field) => {
      expect(traceParentOf(field)).toBeUndefined();
    },
  );
});

describe('traceIdOf', () => {
  it.each([
    `00-${traceId}-${parentId}-01`,
    `00-${traceId}-${parentId}-00`,
    `01-${traceId}-${parentId}-01`,
    `fe-${traceId}-${parentId}-01-what-a-later-version-adds`,
  ])('finds the trace id in %s', (field) => {
    expect(traceIdOf(field)).toBe(traceId);
  });

  it.each([
    undefined,
    '',
    traceId,
    `ff-${traceId}-${parentId}-01`,
    `00-${'0'.repeat(32)}-${parentId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-${traceId.slice(1)}-${parentId}-01`,
    `00-${traceId}-${parentId}`,
    `00-${traceId}-${parentId}-01-more`,
    `00-${traceId}-${parentId}-01 `,
    `01-${traceId}-${parentId}-01more`,
    `00-${traceId}-${parentId}-01, 00-${traceId}-${parentId}-01`,
    ` 00-${traceId}-${parentId}-01`,
  ])('finds none in %j', (field) => {
    expect(traceIdOf(field)).toBeUndefined();
  });
});
