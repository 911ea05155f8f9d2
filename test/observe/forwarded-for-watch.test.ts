import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createForwardedForWatch } from '../../gateway/observe/forwarded-for-watch.ts';
import type { Exchange } from '../../gateway/request/exchange.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';

it('unreadable entries are logged once a minute with their number, and reported until a minute after the last one', () => {
  let atMs = Date.parse('2026-11-28T10:00:00Z');
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const watch = createForwardedForWatch(log, { nowMs: () => atMs, bounds: defaultBounds });
  const end = (entry: string) =>
    watch.ended({ origin: { unreadEntry: { entry, proxy: '10.0.0.1' } } } as Exchange);

  watch.ended({ origin: {} } as Exchange);
  watch.ended({} as Exchange);
  expect(watch.state()).toBeUndefined();
  for (const afterMs of [0, 20_000, 39_999, 1]) {
    atMs += afterMs;
    end(`Unknown`);
  }
  expect(lines.map(({ requests }) => requests)).toEqual([1, 3]);
  atMs += 59_999;
  expect(watch.state()).toEqual({
    proxy: '10.0.0.1',
    form: 'unknown',
    sinceAt: '2026-11-28T10:00:00.000Z',
  });
  atMs += 1;
  expect(watch.state()).toBeUndefined();
  end(`s3cret-${'ř'.repeat(50)}`);
  expect(watch.state()).toEqual({
    proxy: '10.0.0.1',
    form: `a0aaaa-${'?'.repeat(33)}`,
    sinceAt: '2026-11-28T10:02:00.000Z',
  });
});
