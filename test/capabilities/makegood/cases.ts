import { expect } from 'vitest';
import { createCredits } from '../../../gateway/capabilities/makegood/credits/credits.ts';
import { creditKeys } from '../../../gateway/capabilities/makegood/credits/redis-keys.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import type { CapabilityCases } from '../../support/capability-cases.ts';

export const cases: CapabilityCases = {
  // Both names have the key's id as their hash tag.
  severalKeys: [
    'capabilities/makegood/credits/give-back.lua: KEYS[2]',
    'capabilities/makegood/credits/redis-credits.ts: numberOfKeys: 2',
  ],
  redisKeys: {
    kinds: creditKeys,
    async fill({ limiter, keyId }) {
      const nowHour = Math.floor(Date.now() / 3_600_000);
      const everyMinute = Array.from({ length: 60 }, (_, minute) => ({ minute, units: 100_000 }));
      const failed = ['plan', 'trial'].flatMap((bucket) =>
        Array.from({ length: 48 }, (_, back) => {
          return { bucket, hour: nowHour - back, upstream: 'u'.repeat(20), minutes: everyMinute };
        }),
      );
      const run = {
        name: 'r'.repeat(12),
        ...{ fromMs: Date.now() - 1, toMs: Date.now(), oldestHour: 0, keptUntilMs: Date.now() + 600_000 },
        isDryRun: false,
      };
      const credits = createCredits({ counts: limiter.countsOfKeys, nowMs: Date.now, bounds: defaultBounds });
      expect((await credits.giveBack({ keyId: keyId, failed, run })).kind).toBe('given');
    },
  },
};
