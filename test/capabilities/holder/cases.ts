import { expect } from 'vitest';
import { createLinkStore } from '../../../gateway/capabilities/holder/links/link-store.ts';
import { issueToken } from '../../../gateway/capabilities/holder/links/link-token.ts';
import { holderKeys } from '../../../gateway/capabilities/holder/redis-keys.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import type { CapabilityCases } from '../../support/capability-cases.ts';

export const cases: CapabilityCases = {
  settings: {
    'selfService.rotate': [
      { limitsPath: '/me', keys: { directory: true } },
      { selfService: { rotate: true } },
    ],
  },
  redisKeys: {
    kinds: holderKeys,
    config: () => ({ settings: { limitsPath: '/limits' } }),
    read: ['/limits'],
    async fill({ connection, limiter, bounds, keyId }) {
      const store = createLinkStore(connection, bounds);
      const marks = Array(16).fill('secret 0123456789abcdef');
      for (let count = 0; count < bounds.linksPerKeyMax; count++) {
        const digest = digestSecret(issueToken(keyId));
        const createdMs = Date.now();
        const link = { digest, by: 'o'.repeat(20), createdMs, endMs: createdMs + bounds.linkMaxMs, marks };
        expect((await store.add(keyId, link, [])).kind).toBe('added');
      }
      const bucket = limiter.countsOfKeys.openBucket('limits', holderKeys.linkReads.name);
      await bucket.charge('0123456789abcdef', bounds.limitsReadsPerMinuteMax);
    },
  },
};
