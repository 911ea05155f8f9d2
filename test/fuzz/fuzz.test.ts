import { describe, expect, it } from 'vitest';
import { describeFinding } from './describe-finding.ts';
import { fuzz } from './fuzz.ts';

/** `npm run fuzz` runs longer. */
const brief = { count: 300, seconds: 50 };

describe('the fuzzer', () => {
  it.each([20261120, Date.now() % 2 ** 31])('finds nothing from seed %i', async (seed) => {
    const { connections, admitted, finding } = await fuzz({ seed, ...brief });
    console.log(`fuzz: seed ${seed}, ${connections} connections, ${admitted} requests admitted`);
    expect(finding && describeFinding(finding)).toBeUndefined();
    // A run that admits nothing, or everything, would prove nothing.
    expect(admitted).toBeGreaterThan(0);
    expect(admitted).toBeLessThan(connections);
  });
});
