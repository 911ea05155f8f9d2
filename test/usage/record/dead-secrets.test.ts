import { expect, it } from 'vitest';
import {
  countDeadSecrets,
  type DeadSecretUse,
  type LongUse,
} from '../../../gateway/usage/record/dead-secrets.ts';
import { UnsentCounts, UnsentRoom } from '../../../gateway/usage/unsent-counts.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';

const minuteMs = 60_000;
const day = 20_000;
const startMs = day * 24 * 60 * minuteMs + 9 * 60 * minuteMs;

const acme = { keyId: 'acme', digestStart: '9f86d081', address: '192.0.2.1' };

/** Uses a secret at the given minutes. @returns the long uses that were reported */
function use(minutes: readonly number[], secret: DeadSecretUse = acme) {
  const told: LongUse[] = [];
  const count = countDeadSecrets({
    calendar: usageCalendar(minuteMs),
    unsent: new UnsentCounts(new UnsentRoom(1_000)),
    onLongUse: (one) => told.push(one),
    bounds: { usageDeadSecretsMax: 2 },
  });
  for (const minute of minutes) count(startMs + minute * minuteMs, secret);
  return told;
}

const every10 = (from: number, to: number) =>
  Array.from({ length: (to - from) / 10 + 1 }, (_, index) => from + 10 * index);

it('a dead secret that is used for an hour is reported once a day, with its first use', () => {
  expect(use(every10(0, 200))).toEqual([{ keyId: 'acme', digestStart: '9f86d081', sinceMs: startMs, day }]);
  expect(use(every10(0, 50))).toEqual([]);
});

it('a pause of 15 minutes begins the hour anew', () => {
  expect(use([...every10(0, 50), ...every10(70, 120)])).toEqual([]);
  expect(use([...every10(0, 50), ...every10(70, 130)])).toMatchObject([{ sinceMs: startMs + 70 * minuteMs }]);
});

it('on the next day the use is reported again', () => {
  const nextDay = 15 * 60;
  expect(use([...every10(0, 60), ...every10(nextDay, nextDay + 60)]).map((one) => one.day)).toEqual([
    day,
    day + 1,
  ]);
});

it('unknown secrets are not reported', () => {
  expect(use(every10(0, 90), { ...acme, keyId: undefined })).toEqual([]);
});
