import { leakReportKeys } from '../../../gateway/capabilities/leaks/redis-keys.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import type { CapabilityCases } from '../../support/capability-cases.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { makeReporter } from '../../support/leak-report.ts';

const [github, other] = [makeReporter(), makeReporter()];
const leaked = makeKey({ id: 'leaked', plan: 'pro' });
const keysUrl = 'https://one.example.com/keys';
const needsRedis =
  '`leaks.onLeak` needs `redis`: without Redis, a restart would admit a leaked secret again; add `redis`, or write `leaks: { onLeak: report }`, with which leaks are only recorded';
const leaksOf = (github: object) => ({ leaks: { github } });

export const cases: CapabilityCases = {
  // Without Redis, leaks are only recorded.
  defaults: { leaks: { onLeak: 'report' } },
  secretSetting: { name: 'leaks', url: (secret) => `https://keys.example.com/keys?token=${secret}` },
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
  needRedis: [
    ['the end of leaked secrets', { leaks: { onLeak: 'revoke' } }, 'leaks.onLeak', needsRedis],
    ['the report of a scanner', { leaksPath: '/leaks', ...leaksOf({ keysUrl }) }, 'leaks', needsRedis],
  ],
  webhookEvents: [
    {
      what: 'a leaked secret',
      type: 'secret.leaked',
      key: leaked,
      async cause({ change }) {
        const { secret: token } = leaked;
        const report = [{ token, url: `https://example.com/${token}`, type: 'api_key' }];
        for (let sent = 0; sent < 3; sent++) await change('POST', '/leaks', report);
      },
      data: {
        key: 'leaked',
        plan: 'pro',
        digestStart: digestSecret(leaked.secret).slice(0, 8),
        source: 'alice',
        url: 'https://example.com/…',
        ended: true,
      },
    },
  ],
  redisKeys: {
    kinds: leakReportKeys,
    config: () => ({ settings: { leaksPath: '/leaks', ...leaksOf({ keysUrl }) } }),
    read: ['/leaks'],
  },
};
