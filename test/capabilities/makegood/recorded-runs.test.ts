import { expect, it, onTestFinished, vi } from 'vitest';
import { noFigures } from '../../../gateway/capabilities/makegood/run/add-parts.ts';
import { createRecordedRuns } from '../../../gateway/capabilities/makegood/run/recorded-runs.ts';
import type { KeyChange } from '../../../gateway/fleet/changes.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

function open() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const recorded: KeyChange[] = [];
  const bounds = tunedBounds({ makegoodIdleMs: 60_000 });
  const runs = createRecordedRuns({ record: (change) => void recorded.push(change), bounds });
  const asked = { from: '2026-11-26T10:00:00.000Z', to: '2026-11-26T10:20:00.000Z' };
  const part = (units: number) => ({
    author: { by: 'ops' },
    asked,
    figures: {
      ...noFigures,
      ...{ keys: 2, creditedKeys: 1, failedUnits: units, givenBack: { day: units, month: units } },
    },
  });
  return { recorded, runs, asked, part };
}

it('a run is recorded once, with the sums of all its parts, when its last part has ended', () => {
  const { recorded, runs, asked, part } = open();
  runs.note('run', part(3), false);
  vi.advanceTimersByTime(59_999);
  runs.note('run', part(4), false);
  vi.advanceTimersByTime(59_999);
  expect(recorded).toEqual([]);
  runs.note('run', part(5), true);
  vi.advanceTimersByTime(600_000);
  runs.close();
  const sums = { keys: 3, failedKeys: 6, failedUnits: 12, givenBack: { day: 12, month: 12 } };
  expect(recorded).toEqual([{ action: 'makegood', by: 'ops', after: { ...asked, ...sums } }]);
});

it('a run whose client requests no further part is recorded after a while', () => {
  const { recorded, runs, part } = open();
  runs.note('one', part(3), false);
  vi.advanceTimersByTime(60_000);
  expect(recorded.map(({ after }) => after?.failedUnits)).toEqual([3]);
});
