import { expect, it } from 'vitest';
import { createInFlight } from '../../../gateway/forward/upstream/in-flight.ts';

it('holds exactly those that entered and did not leave, whatever the order', () => {
  const inFlight = createInFlight<{ name: number; place: number }>();
  const items = Array.from({ length: 50 }, (_, name) => ({ name, place: 0 }));
  for (const item of items) inFlight.enter(item);
  for (const item of items) if (item.name % 3 !== 0) inFlight.leave(item);
  const left = inFlight.list().map(({ name }) => name);
  expect(left.toSorted((a, b) => a - b)).toEqual(
    items.map(({ name }) => name).filter((name) => name % 3 === 0),
  );
});
