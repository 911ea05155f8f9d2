import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { scriptWithChapters } from '../../gateway/quota/calls/library.ts';
import { calendarMonth, windowIndex, windowStartMs } from '../../gateway/shared/calendar-windows.ts';
import { redisUrl } from '../support/redis.ts';

const script = scriptWithChapters(`
local months = {}
for i = 1, #ARGV do
  local month = monthOf(tonumber(ARGV[i]))
  months[2 * i - 1], months[2 * i] = month, monthStartMs(month)
end
return months`);

it('the script computes the months of the UTC calendar from 1970 to 2370, to the millisecond', async () => {
  const client = new Redis(redisUrl());
  onTestFinished(() => client.disconnect());
  for (let year = 1970; year < 2370; year += 100) {
    const instants = Array.from({ length: 1_200 }, (_, month) => Date.UTC(year, month)).flatMap((startMs) => [
      startMs,
      startMs + 13 * 86_400_000 + 12_345,
      Date.UTC(new Date(startMs).getUTCFullYear(), new Date(startMs).getUTCMonth() + 1) - 1,
    ]);
    const expected = instants.flatMap((instantMs) => {
      const [year = 0, month = 0] = new Date(instantMs).toISOString().split('-').map(Number);
      return [(year - 1970) * 12 + month - 1, Date.UTC(year, month - 1)];
    });
    expect(await client.eval(script, 0, ...instants)).toEqual(expected);
  }
});

it.each(['2026-02-28T23:59:59.999Z', '2028-02-29T12:00:00Z', '2026-12-31T23:59:59Z', '2027-01-01T00:00:00Z'])(
  'the month of %s has its own length',
  (text) => {
    const instantMs = Date.parse(text);
    const index = windowIndex(calendarMonth, instantMs);
    const start = new Date(windowStartMs(calendarMonth, index)).toISOString();
    const end = new Date(windowStartMs(calendarMonth, index + 1)).toISOString();
    expect([start.slice(0, 7), start.slice(7), end.slice(7)]).toEqual([
      text.slice(0, 7),
      '-01T00:00:00.000Z',
      '-01T00:00:00.000Z',
    ]);
    expect(Date.parse(end)).toBeGreaterThan(instantMs);
  },
);
