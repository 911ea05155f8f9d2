import { expect, it } from 'vitest';
import { createWrongTokens } from '../../../../gateway/admin/api/tokens/wrong-tokens.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';

function counting(adminGuessersMax: number) {
  const clock = { nowMs: 0 };
  const own = { adminWrongTokensPerMinuteMax: 3, adminGuessersMax, adminWrongTokensIntervalMs: 10_000 };
  const bounds = tunedBounds(own);
  const wrongTokens = createWrongTokens({ log: { warn: () => {} }, nowMs: () => clock.nowMs, bounds });
  return { clock, wrongTokens };
}

it('an address may send three wrong tokens in its minute, and must then wait for the end of the minute', () => {
  const { clock, wrongTokens } = counting(10);
  const count = () => wrongTokens.count('192.0.2.1');
  expect([count(), count(), count()]).toEqual([undefined, undefined, undefined]);
  clock.nowMs = 20_500;
  expect(count()).toBe(40);
  clock.nowMs = 59_999;
  expect([count(), wrongTokens.count('192.0.2.2')]).toEqual([1, undefined]);
  clock.nowMs = 60_000;
  expect(count()).toBeUndefined();
});

it('an IPv6 address counts by its /64, so that a host has only one count', () => {
  const { wrongTokens } = counting(10);
  for (let host = 1; host <= 3; host++) wrongTokens.count(`2001:db8::${host}`);
  expect(wrongTokens.count('2001:db8::9')).toBe(60);
  expect(wrongTokens.count('2001:db8:0:1::9')).toBeUndefined();
});

it('at most the maximum number of addresses is kept, addresses whose minute has ended are dropped, and the newest still count', () => {
  const { clock, wrongTokens } = counting(100);
  for (let address = 0; address < 10_000; address++) {
    wrongTokens.count(`10.0.${address >> 8}.${address & 255}`);
    expect(wrongTokens.size).toBeLessThanOrEqual(100);
  }
  const newest = '10.0.39.15';
  expect([1, 2, 3].map(() => wrongTokens.count(newest))).toEqual([undefined, undefined, 60]);
  clock.nowMs = 60_000;
  wrongTokens.count(newest);
  expect(wrongTokens.size).toBe(1);
});
