import { holderKeys } from '../../../gateway/capabilities/holder/redis-keys.ts';
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
    page: new URL('../../../gateway/capabilities/holder/README.md', import.meta.url),
    config: () => ({ settings: { limitsPath: '/limits' } }),
    read: ['/limits'],
  },
};
