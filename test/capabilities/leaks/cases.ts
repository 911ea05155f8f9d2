import { leakReportKeys } from '../../../gateway/capabilities/leaks/redis-keys.ts';
import type { CapabilityCases } from '../../support/capability-cases.ts';
import { makeReporter } from '../../support/leak-report.ts';

const [github, other] = [makeReporter(), makeReporter()];
const keysUrl = 'https://one.example.com/keys';
const leaksOf = (github: object) => ({ leaks: { github } });

export const cases: CapabilityCases = {
  defaults: { leaks: { onLeak: 'revoke' } },
  files: { 'github.json': github.publicKeys, 'other-github.json': other.publicKeys },
  settings: {
    leaksPath: [leaksOf({ keysUrl }), { leaksPath: '/leaks' }],
    'leaks.onLeak': [{}, { leaks: { onLeak: 'report' } }],
    'leaks.github.keysFile': [
      leaksOf({ keysFile: 'github.json' }),
      leaksOf({ keysFile: 'other-github.json' }),
    ],
    'leaks.github.keysUrl': [leaksOf({ keysUrl }), leaksOf({ keysUrl: 'http://127.0.0.1:1/keys' })],
  },
  redisKeys: {
    kinds: leakReportKeys,
    page: new URL('../../../gateway/capabilities/leaks/README.md', import.meta.url),
    config: () => ({ settings: { leaksPath: '/leaks', ...leaksOf({ keysUrl }) } }),
    read: ['/leaks'],
  },
};
