import fc from 'fast-check';
import { expect, it } from 'vitest';
import { windowIndex } from '../../gateway/limit/calendar-windows.ts';
import { type KeyVerdict, replayKey } from '../../gateway/simulate/replay-key.ts';
import type { KeyMinutes } from '../../gateway/usage/key-minutes.ts';
import { calendar, minuteMs, recordTwins, type TwinsRecorded, twins } from './twin-keys.ts';

interface Replayed {
  readonly verdict: KeyVerdict;
  readonly differences: readonly number[];
  readonly admitted: readonly (readonly [minute: number, admitted: number])[];
}

function replay({ kept, before, after, bans, fromMinute }: TwinsRecorded): Replayed {
  const differences: number[] = [];
  const admitted: [number, number][] = [];
  const verdict = replayKey(
    { minutes: kept, fromMinute, present: { limits: before, bans }, edited: { limits: after, bans } },
    calendar,
    (minute) => differences.push(minute),
    (minute, requests) => admitted.push([minute, requests]),
  );
  return { verdict, differences, admitted };
}

/** What a record has from the edit on. */
function recorded({ fromMinute }: TwinsRecorded, minutes: KeyMinutes) {
  const places = [...minutes.minute.keys()].filter((place) => (minutes.minute[place] ?? 0) >= fromMinute);
  const sum = (column: Exclude<keyof KeyMinutes, 'minute'>) =>
    places.reduce((all, place) => all + (minutes[column][place] ?? 0), 0);
  return {
    admitted: places.map((place) => [minutes.minute[place] ?? 0, minutes.admitted[place] ?? 0] as const),
    refusals: sum('refused') + sum('bySecond'),
    banned: sum('banned'),
    refused: sum('refused') + sum('bySecond') + sum('banned'),
  };
}

/** Admitted requests by window. */
function byWindow(minutes: readonly (readonly [number, number])[], lengthMs: number) {
  const sums = new Map<number, number>();
  for (const [minute, requests] of minutes) {
    const index = windowIndex(lengthMs, minute * minuteMs);
    sums.set(index, (sums.get(index) ?? 0) + requests);
  }
  return sums;
}

it('says of random plans and traffic what a real gateway did: key by key, window by window', async () => {
  const seen = { certain: 0, bounded: 0, banned: 0, refused: 0 };
  const property = fc.asyncProperty(twins, async (random) => {
    const run = await recordTwins(random);
    const { verdict, differences, admitted } = replay(run);
    const [own, actual] = [recorded(run, run.kept), recorded(run, run.edited)];

    // The proof: what it was limited by in truth.
    expect(differences).toEqual([]);
    expect([verdict.recordedRefusals, verdict.replayedRefusals]).toEqual([own.refusals, own.refusals]);
    expect(verdict.refusedNow).toBe(own.refused);
    if (run.fromMinute <= (run.kept.minute[0] ?? 0)) expect(own.refused).toBe(run.refused[0]);

    // The edit, which its twin got.
    expect(actual.refused).toBeGreaterThanOrEqual(verdict.refusedThenMin);
    expect(actual.refused).toBeLessThanOrEqual(verdict.refusedThenMax);
    if (actual.banned > 0) seen.banned += 1;
    if (verdict.refusedThenMin < verdict.refusedThenMax) {
      seen.bounded += 1;
      return;
    }
    seen.certain += 1;
    if (actual.refused > 0) seen.refused += 1;
    expect(verdict.refusedThen).toBe(actual.refused);
    // Then the sum is certain and not in which minute.
    if (own.banned > 0 || run.after.some(({ window }) => window === 'second')) return;
    expect(admitted).toEqual(actual.admitted);
    for (const { window } of run.after) {
      const lengthMs = calendar.windowsMs[window];
      if (window !== 'second')
        expect(byWindow(admitted, lengthMs)).toEqual(byWindow(actual.admitted, lengthMs));
    }
  });
  await fc.assert(property, { numRuns: 40, interruptAfterTimeLimit: 60_000 });
  // Random traffic that never spent a limit would prove nothing. A slow machine gets through little of it in a minute.
  while (Math.min(...Object.values(seen)) === 0) await fc.assert(property, { numRuns: 1 });
}, 240_000);
