import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import type { Shown } from '../../../gateway/cli/what-if/settings-shown.ts';
import { simulateLog } from '../../../gateway/cli/what-if/simulate-log.ts';

const settings = {
  plans: [{ name: 'free', isCustom: false, windows: [{ window: 'minute', max: 3 }] }],
  keys: [{ id: 'acme', plan: 'free', windows: [{ window: 'minute', max: 3 }], disabled: false }],
  bans: { after: 1_000, withinMs: 60_000, forMs: 60_000, maxMs: 60_000 },
};
const present = { name: 'test', settings, json: {} } as unknown as Shown;

/** An access line, `tookMs` after the request began. */
function line(at: string, own: Record<string, unknown>, tookMs = 0): string {
  const time = new Date(Date.parse(`2026-11-22T${at}Z`) + tookMs).toISOString();
  const common = { keyId: 'acme', source: 'shared', config: 'aaaaaa', window: 'minute' };
  return JSON.stringify({ time, requestId: 'x', status: 200, ...common, ...own, totalMs: tookMs });
}

const admitted = { decision: 'admitted' };
const refused = { decision: 'refused' };

const simulate = (lines: readonly string[], tried = {}) =>
  simulateLog(
    {
      files: ['-'],
      stdin: Readable.from([Buffer.from(lines.join('\n'))]),
      present,
      tried,
      fromMs: undefined,
      toMs: undefined,
    },
    { show() {}, end() {} },
    { logLineReadBytesMax: 10_000 },
  );

it('a request belongs to the minute in which it began, whenever its response was over', async () => {
  const found = await simulate(
    [line('10:00:59', admitted, 5_000), line('10:00:59.500', admitted, 20_000), line('10:01:00', admitted)],
    { plans: { free: { perMinute: 1 } } },
  );
  expect(found).toMatchObject({ source: 'log', totals: { offered: 3, refusedNow: 0, refusedThen: 1 } });
  expect(found.keys).toMatchObject([{ firstRefusedAt: '2026-11-22T10:00:00Z' }]);
});

it('names what the lines tell of why it differs: processes that counted alone, and another configuration', async () => {
  const four = (at: string, own: Record<string, unknown>) =>
    Array.from({ length: 4 }, () => line(at, { ...admitted, ...own }));
  const { reproduced } = await simulate([
    line('09:00:00', admitted),
    ...four('10:00:00', { source: 'local' }),
    line('10:00:30', admitted),
    ...four('11:00:00', {}),
    line('12:00:00', { ...admitted, config: 'bbbbbb' }),
    ...Array.from({ length: 3 }, () => line('12:01:00', { ...admitted, config: 'bbbbbb' })),
    line('12:01:01', { ...refused, config: 'bbbbbb' }),
  ]);
  expect(reproduced).toMatchObject({ recordedRefusals: 1, minutesThatDiffer: 2 });
  expect(reproduced.differences).toMatchObject([
    { at: '2026-11-22T10:00:00Z', why: expect.stringContaining('each process alone') },
    { at: '2026-11-22T11:00:00Z', why: expect.stringContaining('from aaaaaa on bbbbbb is in force') },
  ]);
});

it('lines that are about no key, or charged to a bucket, are none of its requests', async () => {
  const found = await simulate([
    line('10:00:00', admitted),
    line('10:00:01', { ...refused, window: 'limits' }),
    line('10:00:02', { decision: 'counted' }),
    line('10:00:03', { ...refused, window: 'address', keyId: undefined }),
    'no JSON at all "decision":"',
  ]);
  expect(found.totals).toMatchObject({ offered: 1 });
  await expect(simulate(['nothing'])).rejects.toThrow('no line about a request of a key');
});
