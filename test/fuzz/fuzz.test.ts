import { describe, expect, it } from 'vitest';
import { describeFinding } from './describe-finding.ts';
import { fuzz } from './fuzz.ts';

/** The limits of a short run. `npm run fuzz` sends more connections. */
const brief = { count: 300, seconds: 50 };

describe('the fuzzer', () => {
  for (const [seed, tags] of [
    [20261120, []],
    [Date.now() % 2 ** 31, ['full']],
  ] as const)
    it(`finds nothing from seed ${seed}`, { tags: [...tags] }, async () => {
      const { connections, admitted, finding } = await fuzz({ seed, ...brief });
      console.log(`fuzz: seed ${seed}, ${connections} connections, ${admitted} requests admitted`);
      expect(finding && describeFinding(finding)).toBeUndefined();
      // A run that admits no request, or every request, would prove nothing.
      expect(admitted).toBeGreaterThan(0);
      expect(admitted).toBeLessThan(connections);
    });
});
