import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { GatewayState } from '../../../gateway/admin/readiness.ts';
import { watchFaults } from '../../../gateway/admin/verdict/fault-watch.ts';
import { judgeFleet } from '../../../gateway/admin/verdict/judge-fleet.ts';
import { judgeGateway } from '../../../gateway/admin/verdict/judge-gateway.ts';
import type { KnownProcess } from '../../../gateway/fleet/presence.ts';
import { type Fault, type FoundFault, parseProcessState } from '../../../gateway/fleet/process-state.ts';
import { createRecentFigures } from '../../../gateway/observe/metrics/recent-figures.ts';
import { createRequestMetrics } from '../../../gateway/observe/metrics/request-metrics.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { processState } from '../../support/process-state.ts';

const at = (time: string) => `2026-11-22T${time}.000Z`;
const redis = { kind: 'redis', available: true, onFailure: 'local', since: at('09:00:00') } as const;

function target(address: string, downSince?: string, reason = 'health check failed: refused') {
  const common = { address, inFlight: 0, tunnels: 0, full: false };
  return downSince === undefined
    ? { ...common, healthy: true, sinceAt: at('09:00:00') }
    : { ...common, healthy: false, sinceAt: at(downSince), reason };
}

function upstream(name: string, ...targets: ReturnType<typeof target>[]) {
  return { name, url: `http://${name}`, targets };
}

/** A process whose upstream has failed `failed` of 1,000 requests; it finds that the upstream fails if `sinceAt` is given. */
function failing(failed: number, sinceAt?: string, name = 'store') {
  return {
    lastMinute: {
      requests: 2_000,
      failed: { gateway: { requests: 0 }, upstream: { requests: failed } },
      upstreams: [{ name, requests: 1_000, failed }],
    },
    failingUpstreams: sinceAt === undefined ? [] : [{ name, sinceAt: at(sinceAt) }],
  };
}

function failingInGateway(failed: number, sinceAt: string) {
  const gateway = { requests: failed, sinceAt: at(sinceAt) };
  return { lastMinute: { requests: 1_000, failed: { gateway, upstream: { requests: 0 } }, upstreams: [] } };
}

const invalid: Fault = {
  severity: 'warning',
  code: 'configuration_invalid',
  text: 'The configuration on disk is not valid, so configuration 3f2ab4 stays in force: gateway.yaml:3:1: no.',
  sinceAt: at('10:00:00'),
};

/**
 * Returns the verdict about healthy processes, each on its own host. Each entry of `members` is one process, and its fields replace
 * fields of a healthy process.
 */
function judge(
  members: readonly Partial<KnownProcess>[] = [{}, {}],
  {
    store = redis,
    own = [],
    isComplete = true,
    hasDirectory = false,
  }: {
    store?: GatewayState['store'];
    own?: readonly Fault[];
    isComplete?: boolean;
    hasDirectory?: boolean;
  } = {},
) {
  const processes = members.map((each, index) =>
    processState(`p${index + 1}`, {
      ...{
        host: `gw-${index + 1}`,
        startedAt: at('09:00:00'),
        upstreams: [upstream('store', target('a:1'))],
      },
      ...each,
    }),
  );
  const fleet = { isComplete, answeredBy: 'p1', processes };
  return judgeFleet({
    store,
    hasDirectory,
    fleet,
    own,
    nowMs: Date.parse(at('10:06:00')),
    bounds: defaultBounds,
  });
}

const storeAndBilling = (sick: ReturnType<typeof target>) => [
  upstream('store', sick, target('b:1')),
  upstream('billing', target('c:1', '10:05:00')),
];

describe('the verdict on a fleet', () => {
  it.each([
    [
      [{ requestsPerSecond: 1_204, outcomes: { '429': 9.6 } }],
      'All well. 1,204 requests a second. Refused: 0.8 % over a limit or banned.',
    ],
    [
      [
        {
          requestsPerSecond: 15,
          outcomes: { '429': 1.8 },
          addressRefusalsPerSecond: 1.2,
          unauthorizedPerSecond: 3,
        },
      ],
      'All well. 15 requests a second. Refused: 4.0 % over a limit or banned, 8.0 % over the limit of their address and 20 % without a valid key.',
    ],
    [
      [{ requestsPerSecond: 2.5 }, { requestsPerSecond: 2 }],
      'All well. 4.5 requests a second, none refused.',
    ],
    [[{}], 'All well. No request arrived in the last ten seconds.'],
  ])('is that all is well, with the figures: %j', (members, sentence) => {
    expect(judge(members)).toEqual({ severity: 'well', sentence, faults: [] });
  });

  it.each<
    [
      name: string,
      members: readonly Partial<KnownProcess>[],
      rest: Parameters<typeof judge>[1],
      fault: [severity: string, code: string, text: string, sinceAt: string],
    ]
  >([
    [
      'requests that fail at the upstream, over both processes',
      [failing(200, '10:05:03'), failing(40, '10:05:01')],
      {},
      [
        'bad',
        'upstream_fails_requests',
        '12 % of the requests to the upstream failed in the last minute (240 × 5xx or cut off).',
        '10:05:01',
      ],
    ],
    [
      'requests that fail in the gateway',
      [failingInGateway(20, '10:05:03'), {}],
      {},
      [
        'bad',
        'gateway_fails_requests',
        '2.0 % of the requests of the last minute failed in the gateway (20 × 5xx or cut off).',
        '10:05:03',
      ],
    ],
    [
      'requests that failed in the gateway until Redis came back',
      [
        {
          ...failingInGateway(20, '10:05:03'),
          store: { kind: 'redis', available: true, sinceAt: at('10:05:40') },
        },
        { store: { kind: 'redis', available: true, sinceAt: at('10:05:39') } },
      ],
      {},
      [
        'bad',
        'gateway_fails_requests',
        '2.0 % of the requests of the last minute failed in the gateway (20 × 5xx or cut off): Redis was away until 10:05:40 UTC.',
        '10:05:03',
      ],
    ],
    [
      'requests that still fail in the gateway when Redis has been back for more than a minute',
      [
        {
          ...failingInGateway(20, '10:04:03'),
          store: { kind: 'redis', available: true, sinceAt: at('10:04:59') },
        },
      ],
      {},
      [
        'bad',
        'gateway_fails_requests',
        '2.0 % of the requests of the last minute failed in the gateway (20 × 5xx or cut off).',
        '10:04:03',
      ],
    ],
    [
      'Redis away, first for the other process; the own process was started since',
      [
        { store: { kind: 'redis', available: false, sinceAt: at('10:02:00') } },
        { store: { kind: 'redis', available: false, sinceAt: at('10:01:00') } },
      ],
      { store: { ...redis, available: false, since: at('10:02:00'), reason: 'connection refused' } },
      [
        'bad',
        'redis_away',
        'Redis is away (connection refused): limits are counted by each process on its own.',
        '10:01:00',
      ],
    ],
    [
      'Redis away with a key directory',
      [{}],
      { store: { ...redis, available: false, since: at('10:02:00') }, hasDirectory: true },
      [
        'bad',
        'redis_away',
        'Redis is away: limits are counted by each process on its own, and keys of the directory that a process has not read get 503.',
        '10:02:00',
      ],
    ],
    [
      'Redis away under refuse',
      [{}],
      { store: { ...redis, available: false, onFailure: 'refuse', since: at('10:02:00') } },
      ['bad', 'redis_away', 'Redis is away: requests with a key are answered 503.', '10:02:00'],
    ],
    [
      'Redis away, which makes requests fail, for the only process that is known',
      [failingInGateway(20, '10:05:03')],
      { store: { ...redis, available: false, since: at('10:02:00') }, isComplete: false },
      [
        'bad',
        'redis_away',
        'Redis is away: limits are counted by each process on its own, and only this gateway is known here. 2.0 % of the requests of the last minute failed in the gateway (20 × 5xx or cut off).',
        '10:02:00',
      ],
    ],
    [
      'one server of a Redis Cluster away',
      [{}],
      {
        store: {
          ...{ ...redis, available: false, since: at('10:02:00') },
          servers: [
            { name: 'r1:1', available: false, since: at('10:02:00') },
            { name: 'r2:1', available: true, since: at('09:00:00') },
          ],
        },
      },
      [
        'bad',
        'redis_away',
        '1 of 2 servers of Redis (r1:1) is away: limits of their keys are counted by each process on its own.',
        '10:02:00',
      ],
    ],
    [
      'Redis away for another process',
      [{}, { store: { kind: 'redis', available: false, sinceAt: at('10:02:00') } }],
      {},
      ['bad', 'redis_away', 'Redis is away for 1 of 2 processes: gw-2 (pid 1).', '10:02:00'],
    ],
    [
      'an upstream without a healthy target, since its last one went down',
      [{ upstreams: [upstream('default', target('a:1', '10:01:00'), target('b:1', '10:03:00'))] }],
      {},
      [
        'bad',
        'upstream_down',
        'The upstream has no healthy target (health check failed: refused): its requests fail.',
        '10:03:00',
      ],
    ],
    [
      'the same for one of two processes',
      [{}, { upstreams: [upstream('store', target('a:1', '10:01:00'))] }],
      {},
      [
        'bad',
        'upstream_down',
        'The upstream has no healthy target (health check failed: refused) for 1 of 2 processes: their requests to it fail.',
        '10:01:00',
      ],
    ],
    [
      'an upstream that each process can reach by another target is not down',
      [
        { upstreams: [upstream('store', target('a:1', '10:01:00'), target('b:1'))] },
        { upstreams: [upstream('store', target('a:1'), target('b:1', '10:02:00', 'timeout'))] },
      ],
      {},
      [
        'warning',
        'targets_down',
        '2 of 2 targets of the upstream are down: a:1 for 1 of 2 processes (health check failed: refused), b:1 for 1 of 2 processes (timeout).',
        '10:01:00',
      ],
    ],
    [
      'one target down for both processes, of which one was started since',
      ['10:04:00', '10:01:00'].map((since) => ({
        upstreams: [upstream('store', target('a:1', since), target('b:1'))],
      })),
      {},
      [
        'warning',
        'targets_down',
        '1 of 2 targets of the upstream is down: a:1 (health check failed: refused).',
        '10:01:00',
      ],
    ],
    [
      'one target down for a process, although healthy targets of other processes of a large fleet are omitted',
      [
        { upstreams: [{ ...upstream('store'), omittedTargets: 2 }] },
        { upstreams: [{ ...upstream('store', target('a:1', '10:01:00')), omittedTargets: 1 }] },
      ],
      {},
      [
        'warning',
        'targets_down',
        '1 of 1 target of the upstream is down: a:1 (health check failed: refused).',
        '10:01:00',
      ],
    ],
    [
      'a host name that is not found any more',
      [
        {
          upstreams: [
            {
              ...upstream('store', target('a:1')),
              lookupError: 'ENOTFOUND',
              lookupErrorSinceAt: at('10:01:00'),
            },
          ],
        },
      ],
      {},
      [
        'warning',
        'lookup_failed',
        'The host name of the upstream cannot be looked up: ENOTFOUND.',
        '10:01:00',
      ],
    ],
    [
      'another configuration on one of three, since the second version was loaded',
      [
        { configVersion: 'aaaaaabbbbbb', configLoadedAt: at('09:00:00') },
        { configVersion: 'ccccccbbbbbb', configLoadedAt: at('10:00:00') },
        { configVersion: 'ccccccbbbbbb', configLoadedAt: at('10:01:00') },
      ],
      {},
      [
        'warning',
        'configuration_differs',
        '1 of 3 processes has another configuration than cccccc: gw-1 (pid 1) has aaaaaa.',
        '10:00:00',
      ],
    ],
    [
      'an invalid edit on every host: since the first of them saw it',
      [{ faults: [invalid] }, { faults: [{ ...invalid, sinceAt: at('09:59:00') }] }],
      { own: [invalid] },
      ['warning', 'configuration_invalid', invalid.text, '09:59:00'],
    ],
    [
      'an invalid edit on another host than that which answers',
      [{}, { faults: [invalid] }],
      {},
      ['warning', 'configuration_invalid', `On gw-2 (pid 1): t${invalid.text.slice(1)}`, '10:00:00'],
    ],
    [
      'a gateway without a worker, and so without a process',
      [],
      { own: [{ severity: 'bad', code: 'no_worker', text: 'No worker.', sinceAt: at('10:00:00') }] },
      ['bad', 'no_worker', 'No worker.', '10:00:00'],
    ],
  ])('is one fault, with its beginning: %s', (_, members, rest, [severity, code, text, sinceAt]) => {
    expect(judge(members, rest)).toEqual({
      severity,
      sentence: text,
      faults: [{ severity, code, text, sinceAt: at(sinceAt) }],
    });
  });

  it('puts the effect on requests first, then its cause, and a target of another upstream last', () => {
    const members = {
      upstreams: storeAndBilling(target('a:1', '10:00:00')),
      ...failing(120, '10:05:02', 'billing'),
    };
    const { severity, sentence, faults } = judge([members]);
    expect([severity, sentence]).toEqual([
      'bad',
      '12 % of the requests to the upstream billing failed in the last minute (120 × 5xx or cut off): it has no healthy target.',
    ]);
    expect(faults.map(({ code }) => code)).toEqual([
      'upstream_fails_requests',
      'upstream_down',
      'targets_down',
    ]);
  });

  it('does not change for four failures in the gateway, or for one in a thousand', () => {
    for (const [failed, requests] of [
      [4, 100],
      [9, 9_000],
    ] as const) {
      const { lastMinute } = failingInGateway(failed, '10:00:00');
      expect(judge([{ lastMinute: { ...lastMinute, requests } }]).severity).toBe('well');
    }
  });

  it('does not change for failures of an upstream that no gateway finds to be failing', () => {
    expect(judge([failing(900)]).severity).toBe('well');
  });

  it('is a warning while an upstream that failed has no more failures, until it is well', () => {
    expect(judge([failing(0, '10:05:02')]).faults).toEqual([
      {
        severity: 'warning',
        code: 'upstream_fails_requests',
        text: 'Many requests to the upstream failed, but none in the last minute.',
        sinceAt: at('10:05:02'),
      },
    ]);
  });

  it('stays well with a notice, which it lists', () => {
    const draining: Fault = {
      severity: 'notice',
      code: 'draining',
      text: 'A gateway drains.',
      sinceAt: at('10:00:00'),
    };
    const verdict = judge([{}, { faults: [draining] }]);
    expect([verdict.severity, verdict.sentence]).toEqual(['well', expect.stringMatching(/^All well/)]);
    expect(verdict.faults).toEqual([{ ...draining, text: 'On gw-2 (pid 1): a gateway drains.' }]);
  });

  it('uses the state of a process of an earlier version, although it has fewer members', () => {
    const {
      configLoadedAt: _,
      lastMinute: __,
      faults: ___,
      ...earlier
    } = processState('p9', {
      upstreams: [upstream('store', target('a:1', '10:00:00'))],
    });
    const { sinceAt: ____, ...sick } = target('a:1', '10:00:00');
    const text = JSON.stringify({ ...earlier, upstreams: [{ name: 'store', url: 'x', targets: [sick] }] });
    const process = parseProcessState(text);
    expect(process && judge([process])).toMatchObject({
      faults: [{ code: 'upstream_down', sinceAt: earlier.startedAt }],
    });
    expect(['{}', 'null', 'no', '{"id":1}'].map(parseProcessState)).toEqual(Array(4).fill(undefined));
  });
});

describe('the faults of a gateway as a whole', () => {
  const state: GatewayState = {
    phase: 'serving',
    environment: 'test',
    config: { version: '3f2ab4c3f2ab', loadedAt: at('09:00:00') },
    store: redis,
    hasDirectory: false,
    leakedSecrets: 0,
    parts: [],
    certificates: {},
    upstreams: {},
  };
  const certificate = {
    notAfter: at('10:00:00'),
    notice: 'the certificate ends',
    noticeSinceAt: at('10:00:00'),
  };

  it.each<[Partial<GatewayState>, FoundFault[]]>([
    [{}, []],
    [
      { phase: 'draining' },
      [
        {
          severity: 'notice',
          code: 'draining',
          text: 'A gateway drains: it finishes its last requests, and ends.',
        },
      ],
    ],
    [
      { workers: { configured: 4, serving: 3, replaced: 7 } },
      [{ severity: 'warning', code: 'workers_missing', text: 'A gateway has 3 of its 4 workers.' }],
    ],
    [
      { workers: { configured: 4, serving: 0, replaced: 7 } },
      [
        {
          severity: 'bad',
          code: 'no_worker',
          text: 'The gateway that answers has no worker that serves requests.',
        },
      ],
    ],
    [
      { store: { ...redis, missingCommands: ['zadd', 'info'] } },
      [
        {
          severity: 'bad',
          code: 'redis_commands_refused',
          text: 'The Redis user may not run zadd, info: its ACL must allow them.',
        },
      ],
    ],
    [
      { config: { ...state.config, lastError: 'gateway.yaml:3:1: no\n  3 | plans: no\n    | ^' } },
      [{ severity: 'warning', code: 'configuration_invalid', text: invalid.text }],
    ],
    ...[true, false].map((revokes): [Partial<GatewayState>, FoundFault[]] => [
      {
        config: {
          ...state.config,
          lastError: 'keys.yaml:3:1: no',
          kept: [{ file: 'keys.yaml', reason: 'keys.yaml:3:1: no', since: at('10:00:00'), revokes }],
        },
      },
      [
        {
          severity: 'warning',
          code: 'configuration_invalid',
          text: `keys.yaml is not valid and keeps its last valid content${revokes ? ', without the keys and tokens that it revokes' : ''}: keys.yaml:3:1: no.`,
          sinceAt: at('10:00:00'),
        },
      ],
    ]),
    [
      {
        parts: [
          { members: {}, reasons: [], faults: [{ severity: 'warning', code: 'held', text: 'It is held.' }] },
        ],
      },
      [{ severity: 'warning', code: 'held', text: 'It is held.' }],
    ],
    [
      { config: { ...state.config, waitsForRestart: ['workers', 'redis'] } },
      [
        {
          severity: 'notice',
          code: 'restart_needed',
          text: 'A change of workers, redis takes effect when the gateway is started again.',
        },
      ],
    ],
    [
      {
        upstreams: {
          store: {
            url: 'http://a',
            targets: [],
            awaited: { url: 'http://b', lookupError: 'ENOTFOUND', lookupErrorSinceAt: at('10:00:00') },
          },
        },
      },
      [
        {
          severity: 'warning',
          code: 'upstream_edit_waits',
          text: 'The upstream store stays as it was: the host of http://b cannot be looked up (ENOTFOUND).',
          sinceAt: at('10:00:00'),
        },
      ],
    ],
    [
      { certificates: { listen: certificate } },
      [
        {
          severity: 'warning',
          code: 'certificate_expires',
          text: 'The certificate ends.',
          sinceAt: at('10:00:00'),
        },
      ],
    ],
    ...(['listen', 'admin'] as const).map((listener): [Partial<GatewayState>, FoundFault[]] => [
      { certificates: { [listener]: { ...certificate, isExpired: true } } },
      [
        {
          severity: listener === 'listen' ? 'bad' : 'warning',
          code: 'certificate_expired',
          text: 'The certificate ends.',
          sinceAt: at('10:00:00'),
        },
      ],
    ]),
    [
      { usage: { keptDays: 8, lostRequests: 0, pausedBecause: 'Redis is 71 % full' } },
      [
        {
          severity: 'warning',
          code: 'recording_paused',
          text: 'The usage record pauses: Redis is 71 % full.',
        },
      ],
    ],
  ])('%j', (members, faults) => {
    expect(judgeGateway({ ...state, ...members })).toEqual(faults);
  });

  it('keep their beginning while their figures change, and have it even if no client requested the state at that time', () => {
    vi.useFakeTimers({ now: Date.parse(at('10:00:00')) });
    onTestFinished(() => void vi.useRealTimers());
    let percent: number | undefined;
    const fault = () => ({
      severity: 'warning' as const,
      code: 'recording_paused',
      text: `Redis is ${percent} % full.`,
    });
    const watch = watchFaults(() => (percent === undefined ? [] : [fault()]), {
      nowMs: Date.now,
      bounds: defaultBounds,
    });
    onTestFinished(() => watch.close());
    vi.advanceTimersByTime(5_000);
    percent = 71;
    vi.advanceTimersByTime(2_000);
    percent = 72;
    vi.advanceTimersByTime(60_000);
    expect(watch.read()).toEqual([{ ...fault(), sinceAt: at('10:00:06') }]);
    percent = undefined;
    vi.advanceTimersByTime(2_000);
    percent = 71;
    expect(watch.read()).toEqual([{ ...fault(), sinceAt: at('10:01:09') }]);
  });
});

it('a process counts the failures of the last minute by upstream, and records since when a hundredth fails in the gateway', () => {
  vi.useFakeTimers({ now: Date.parse(at('10:00:00')) });
  onTestFinished(() => void vi.useRealTimers());
  const counted = { requests: 0, failed: 0, failedInGateway: 0 };
  const counts = createRequestMetrics().counts();
  const metrics = {
    counts: () => ({
      ...counts,
      ownDuration: { counts: [counted.requests], sumMs: 0 },
      failures: new Map([
        ['upstream', counted.failed],
        ['gateway', counted.failedInGateway],
      ]),
      byUpstream: new Map([['store', { requests: counted.requests, failed: counted.failed }]]),
    }),
  };
  const figures = createRecentFigures(metrics, { nowMs: Date.now, bounds: defaultBounds });
  onTestFinished(figures.close);
  const pass = (seconds: number, failedPerSecond: number) => {
    for (let second = 0; second < seconds; second++) {
      counted.requests += 10;
      counted.failed += failedPerSecond;
      counted.failedInGateway += failedPerSecond;
      vi.advanceTimersByTime(1_000);
    }
  };
  pass(120, 0);
  expect(figures.read().lastMinute).toEqual({
    requests: 600,
    failed: { gateway: { requests: 0 }, upstream: { requests: 0 } },
    upstreams: [{ name: 'store', requests: 600, failed: 0 }],
  });
  pass(30, 2);
  const { failed, upstreams } = figures.read().lastMinute;
  expect(failed.gateway).toEqual({ requests: 60, sinceAt: at('10:02:04') });
  expect(upstreams).toEqual([{ name: 'store', requests: 600, failed: 60 }]);
  pass(61, 0);
  expect(figures.read().lastMinute.failed.gateway).toEqual({ requests: 0 });
});
