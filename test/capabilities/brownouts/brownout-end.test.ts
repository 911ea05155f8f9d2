import { expect, it } from 'vitest';
import { brownoutEndMs } from '../../../gateway/capabilities/brownouts/brownouts.ts';
import type { Brownouts } from '../../../gateway/capabilities/brownouts/operation-member.ts';

const endAt = (brownouts: readonly Brownouts[], nowMs: number, sunsetMs = 1_000) =>
  brownoutEndMs(
    {
      id: 'old',
      method: 'GET',
      template: '/old',
      upstream: 'default',
      deprecation: { sinceMs: 0, sunsetMs, afterSunset: 'gone', brownouts },
    },
    nowMs,
  );

const once: Brownouts = { fromMs: 100, forMs: 10 };
const often: Brownouts = { fromMs: 100, everyMs: 50, forMs: 10 };
const always: Brownouts = { fromMs: 100, everyMs: 10, forMs: 10 };

it.each<[string, readonly Brownouts[], nowMs: number, endMs: number | undefined]>([
  ['before the first', [once], 99, undefined],
  ['at the first instant of one', [once], 100, 110],
  ['at the last instant of one', [once], 109, 110],
  ['at the end of one', [once], 110, undefined],
  ['at the second of a series', [often], 150, 160],
  ['between two of a series', [often], 149, undefined],
  ['without a pause', [always], 505, 1_000],
  ['that the sunset cuts', [{ fromMs: 100, everyMs: 50, forMs: 49 }], 995, 999],
  ['that lasts until the sunset', [{ fromMs: 990, forMs: 50 }], 990, 1_000],
  ['after the sunset', [often], 1_000, undefined],
  ['that the next series continues', [once, { fromMs: 105, forMs: 20 }], 104, 125],
  ['that two later series continue', [once, { fromMs: 110, forMs: 5 }, { fromMs: 115, forMs: 1 }], 100, 116],
  ['of a series that the next one has replaced', [often, { fromMs: 145, forMs: 1 }], 150, undefined],
  ['that a series without a pause continues', [once, { ...always, fromMs: 105 }], 100, 1_000],
])('a brownout %s ends when it is over', (_, brownouts, nowMs, endMs) => {
  expect(endAt(brownouts, nowMs)).toBe(endMs);
});
