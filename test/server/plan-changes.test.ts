import { expect, it, onTestFinished } from 'vitest';
import { followPlanChanges } from '../../gateway/server/plan-changes.ts';
import { makeKey, plans } from '../support/gateway-process.ts';
import { settingsOf } from '../support/settings-of.ts';

it('a change that began by a wrong clock while the store was away is undone when the store returns', async () => {
  const fromMs = Date.now() + 3_600_000;
  const changes = [{ from: new Date(fromMs).toISOString(), perMinute: 8 }];
  const key = makeKey({ id: 'acme' });
  const settings = await settingsOf({
    upstream: { url: 'http://127.0.0.1:1' },
    plans: { ...plans, free: { perMinute: 5, changes } },
    keys: [key.entry],
  });
  let clockMs = fromMs + 1;
  const limits: number[] = [];
  const logged: string[] = [];
  const limitOf = (of: typeof settings) => of.keys.get('acme')?.limits[0]?.max ?? 0;
  const followed = followPlanChanges({
    limiter: { storeNowMs: () => clockMs, readStoreNowMs: async () => clockMs },
    parts: [],
    log: { info: (_: object, text?: string) => void logged.push(text ?? '') },
    bounds: { planClockReadIntervalMs: 1 },
    onChange: (next) => void limits.push(limitOf(next)),
  });
  onTestFinished(() => followed.close());
  expect(limitOf(followed.take(settings))).toBe(8);
  await followed.settled();
  clockMs = fromMs - 1_000;
  await expect.poll(() => limits).toEqual([5]);
  clockMs = fromMs;
  await expect.poll(() => limits).toEqual([5, 8]);
  expect(logged).toEqual([
    expect.stringContaining('its earlier limits again'),
    expect.stringContaining('changed at their date'),
  ]);
});
