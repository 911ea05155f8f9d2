import { expect, it } from 'vitest';
import { secondsUntil } from '../../../gateway/shared/schema/dates-and-durations.ts';

it.each([
  [1, 1],
  [1000, 1],
  [1001, 2],
  [0, 0],
  [-5, 0],
])('secondsUntil rounds %i ms up to %i s, so that a waiting client is never early', (fromNowMs, seconds) => {
  const nowMs = Date.UTC(2026, 10, 21, 12, 0, 29, 500);
  expect(secondsUntil(nowMs + fromNowMs, nowMs)).toBe(seconds);
});
