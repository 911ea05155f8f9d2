import { describe, expect, it } from 'vitest';
import { describeFinding } from './describe-finding.ts';
import { fuzz } from './fuzz.ts';
import { secrets } from './fuzz-keys.ts';
import { startRig } from './rig.ts';

/** `npm run fuzz` runs longer. */
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

  // A short run ends before the key with the low limit is banned, so this test bans a key itself.
  it('finds nothing wrong with the responses to a banned key', async () => {
    const rig = await startRig();
    try {
      const request = `GET /v1/pets HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer ${secrets.tight}\r\n\r\n`;
      const isBanned = () => rig.gateway.lines.some(({ msg }) => msg === 'a key is banned');
      while (!isBanned()) expect((await rig.try([request.repeat(20)])).faults).toEqual([]);
      const { statuses, faults } = await rig.try([request]);
      expect({ statuses, faults }).toEqual({ statuses: [429], faults: [] });
    } finally {
      await rig.stop();
    }
  });
});
