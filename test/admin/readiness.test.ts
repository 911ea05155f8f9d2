import { describe, expect, it } from 'vitest';
import { type GatewayState, judgeReadiness } from '../../gateway/admin/readiness.ts';

function upstreamWith(...targets: { address: string; healthy: boolean; full: boolean }[]) {
  return { url: 'http://store:3000', targets };
}

const keptKeys = {
  file: 'keys.yaml',
  reason: 'keys.yaml:3:4: no',
  since: '2026-11-24T06:00:00.000Z',
  revokes: true,
};

const healthy: GatewayState = {
  phase: 'serving',
  environment: 'test',
  config: { version: '0123456789ab', loadedAt: '2026-11-21T00:00:00.000Z' },
  store: { kind: 'redis', available: true, onFailure: 'local', since: '2026-11-21T00:00:00.000Z' },
  hasDirectory: false,
  leakedSecrets: 0,
  parts: [],
  certificates: { listen: { notAfter: '2027-11-21T00:00:00.000Z' } },
  upstreams: { default: upstreamWith({ address: '127.0.0.1:3000', healthy: true, full: false }) },
};

const redisAway = { kind: 'redis', available: false, since: '2026-11-21T00:00:00.000Z' } as const;
const busy = { address: '127.0.0.1:3000', healthy: true, full: true };

describe('judgeReadiness', () => {
  it.each<[string, Partial<GatewayState>]>([
    ['every part is healthy', {}],
    ['there is no Redis to lose', { store: { kind: 'memory' } }],
  ])('is ok while %s', (_, change) => {
    const { httpStatus, body } = judgeReadiness({ ...healthy, ...change });
    expect([httpStatus, body.status, body.reasons]).toEqual([200, 'ok', []]);
  });

  it.each<[string, Partial<GatewayState>, RegExp]>([
    ['Redis is away and each process counts alone', { store: { ...redisAway, onFailure: 'local' } }, /Redis/],
    ['the upstream has no target', { upstreams: { default: upstreamWith() } }, /no healthy target/],
    [
      'every connection to a target is in use',
      { upstreams: { default: upstreamWith(busy) } },
      /127\.0\.0\.1:3000/,
    ],
    [
      'nothing is recorded',
      { usage: { keptDays: 8, pausedBecause: 'Redis is almost full', lostRequests: 0 } },
      /the usage record pauses: Redis is almost full/,
    ],
    [
      'a trusted proxy writes entries of X-Forwarded-For that are no addresses',
      { unreadForwardedFor: { proxy: '10.0.0.1', form: 'unknown', sinceAt: '2026-11-24T06:00:00.000Z' } },
      /^the trusted proxy 10\.0\.0\.1 writes entries of X-Forwarded-For that are no addresses \(of the form unknown\)/,
    ],
    [
      'a capability has a reason',
      { parts: [{ members: { held: 1 }, reasons: ['something is held'], faults: [] }] },
      /^something is held$/,
    ],
    ['the files are invalid', { config: { ...healthy.config, lastError: 'x' } }, /configuration/],
    [
      'a file keeps its last valid content',
      { config: { ...healthy.config, lastError: 'x', kept: [keptKeys] } },
      /^keys\.yaml keeps its last valid content since 2026-11-24T06:00:00\.000Z, without the keys and tokens that it revokes: keys\.yaml:3:4: no$/,
    ],
    [
      'settings wait for a restart',
      { config: { ...healthy.config, waitsForRestart: ['redis', 'usage'] } },
      /^a change of redis, usage takes effect at the next start$/,
    ],
  ])(
    'stays ready but degraded while %s, because all replicas have that at the same time',
    (_, change, reason) => {
      const { httpStatus, body } = judgeReadiness({ ...healthy, ...change });
      expect([httpStatus, body.status]).toEqual([200, 'degraded']);
      expect(body.reasons).toEqual([expect.stringMatching(reason)]);
    },
  );

  it.each([
    [
      'local',
      /^Redis server b:1 is away \(closed\); limits of its keys are counted by each process on its own$/,
    ],
    ['refuse', /^Redis server b:1 is away \(closed\); requests with its keys are answered 503$/],
  ] as const)(
    'stays ready under `%s` while one of the servers of a Cluster is away, and names it',
    (onFailure, reason) => {
      const since = healthy.config.loadedAt;
      const [there, away] = [
        { name: 'a:1', available: true, since },
        { name: 'b:1', available: false, since, reason: 'closed' },
      ];
      const store = { ...redisAway, onFailure };
      const part = judgeReadiness({ ...healthy, store: { ...store, servers: [there, away] } });
      expect([part.httpStatus, part.body.reasons]).toEqual([200, [expect.stringMatching(reason)]]);
      const all = judgeReadiness({ ...healthy, store: { ...store, servers: [away] } });
      expect(all.httpStatus).toBe(onFailure === 'refuse' ? 503 : 200);
    },
  );

  it('names the upstream in a reason when there are several', () => {
    const up = { address: '10.0.0.1:80', healthy: true, full: false };
    const store = upstreamWith({ ...up, full: true }, { ...up, address: '10.0.0.2:80', healthy: false });
    const orders = upstreamWith({ ...up, healthy: false });
    const reasonsOf = (upstreams: GatewayState['upstreams']) =>
      judgeReadiness({ ...healthy, upstreams }).body.reasons;
    expect(reasonsOf({ store, orders })).toEqual([
      'every connection to 10.0.0.1:80 of the upstream `store` is in use; further requests wait',
      'the upstream `orders` has no healthy target',
    ]);
    expect(reasonsOf({ orders })).toEqual(['the upstream has no healthy target']);
  });

  it.each<[string, Partial<GatewayState>, RegExp]>([
    ['it starts', { phase: 'starting' }, /starting/],
    ['it drains', { phase: 'draining' }, /draining/],
    ['it would refuse every request', { store: { ...redisAway, onFailure: 'refuse' } }, /Redis/],
  ])('is not ready while %s', (_, change, reason) => {
    const { httpStatus, body } = judgeReadiness({ ...healthy, ...change });
    expect([httpStatus, body.status]).toEqual([503, 'unavailable']);
    expect(body.reasons).toEqual([expect.stringMatching(reason)]);
  });

  it('lists all reasons, first those that make it unavailable', () => {
    const { body } = judgeReadiness({
      ...healthy,
      phase: 'draining',
      upstreams: { default: upstreamWith() },
    });
    expect(body.reasons).toEqual([
      expect.stringMatching(/draining/),
      expect.stringMatching(/no healthy target/),
    ]);
  });
});
