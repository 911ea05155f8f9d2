import { describe, expect, it } from 'vitest';
import * as formats from '../../gateway/admin/pages/browser/formats.js';
import { verdict } from '../../gateway/admin/pages/browser/verdict.js';

describe('how the pages write', () => {
  it.each([
    [formats.count(1_234_567), '1,234,567'],
    [formats.count(undefined), '–'],
    [formats.rate(0), '0'],
    [formats.rate(0.04), '0.0'],
    [formats.rate(9.96), '10.0'],
    [formats.rate(1_204.4), '1,204'],
    [formats.percent(0), '0 %'],
    [formats.percent(0.0004), '< 0.1 %'],
    [formats.percent(0.008), '0.8 %'],
    // Not 100 % while something is left.
    [formats.percent(0.9996), '99 %'],
    [formats.percent(1), '100 %'],
    [formats.milliseconds(0.256), '0.26'],
    [formats.milliseconds(1.94), '1.9'],
    [formats.milliseconds(1_250), '1,250'],
    [formats.duration(-1), '0 s'],
    [formats.duration(59_999), '59 s'],
    [formats.duration(60_000), '1 min'],
    [formats.duration(48_480_000), '13 h 28 min'],
    [formats.duration(172_800_000), '2 days'],
    [formats.relative(1_000_000, 1_000_500), 'now'],
    [formats.relative(1_024_000, 1_000_000), 'in 24 s'],
    [formats.relative(988_000, 1_000_000), '12 s ago'],
    [formats.counted(1, 'key'), '1 key'],
    [formats.counted(1_000, 'process', 'processes'), '1,000 processes'],
  ])('%s', (written, expected) => {
    expect(written).toBe(expected);
  });

  it('an instant in full has the time here and in UTC', () => {
    expect(formats.fullInstant(Date.parse('2026-11-22T10:31:07Z'))).toContain('(2026-11-22 10:31:07 UTC)');
  });
});

const process = { id: 'a', host: 'gw-1', pid: 1, configVersion: '4576ad000000', phase: 'serving' };
const state = {
  config: { version: '4576ad000000' },
  store: { kind: 'redis', available: true },
  upstreams: [{ name: 'default', targets: [{ address: '10.0.0.7:3000', healthy: true }] }],
  certificates: {},
  isComplete: true,
  answeredBy: 'a',
  processes: [process],
};
const totals = { perSecond: 1_204, outcomes: { '429': 9.6 } } as unknown as Parameters<
  typeof verdict
>[0]['totals'];
const nowMs = Date.parse('2026-11-22T10:32:07Z');
const minute = { requests: 1_000, failedByGateway: 0, failedByUpstream: 0 };

describe('the sentence at the top', () => {
  it('says that all is well, and how much', () => {
    expect(verdict({ state, totals, lastMinute: minute, nowMs })).toEqual([
      { tone: 'well', text: 'All well. 1,204 requests a second, 0.8 % of them refused.' },
    ]);
  });

  it.each([
    [
      'bad',
      { store: { kind: 'redis', available: false, onFailure: 'local', sinceAt: '2026-11-22T10:30:07Z' } },
      /^Redis is away since \d\d:\d\d:07 \(2 min\); limits are counted by each process on its own\.$/,
    ],
    [
      'bad',
      { store: { kind: 'redis', available: false, onFailure: 'refuse', sinceAt: '2026-11-22T10:30:07Z' } },
      /requests with a key are answered 503\.$/,
    ],
    [
      'bad',
      { upstreams: [{ name: 'default', targets: [{ address: 'a:1', healthy: false }] }] },
      /^The upstream has no healthy target: its requests fail\.$/,
    ],
    [
      'near',
      {
        upstreams: [
          {
            name: 'default',
            targets: [
              { address: 'a:1', healthy: false },
              { address: 'b:1', healthy: true },
            ],
          },
        ],
      },
      /^1 of 2 targets of the upstream is down: a:1\.$/,
    ],
    [
      'near',
      {
        upstreams: [
          {
            name: 'default',
            lookupError: 'getaddrinfo ENOTFOUND',
            targets: [{ address: 'a:1', healthy: true }],
          },
        ],
      },
      /^The host name of the upstream cannot be looked up: getaddrinfo ENOTFOUND\.$/,
    ],
    [
      'bad',
      { store: { kind: 'redis', available: true, missingCommands: ['zadd', 'info'] } },
      /^The Redis user may not run zadd, info: its ACL must allow them\.$/,
    ],
    [
      'bad',
      {
        processes: [process, { ...process, id: 'b', pid: 2, store: { kind: 'redis', available: false } }],
      },
      /^Redis is away for 1 of 2 processes: gw-1 \(pid 2\)\.$/,
    ],
    [
      'near',
      { workers: { configured: 4, serving: 3, replaced: 7 } },
      /^3 of 4 workers of this gateway serve\.$/,
    ],
    [
      'near',
      { processes: [process, { ...process, id: 'b', pid: 2, configVersion: 'ffffff000000' }] },
      /^1 of 2 processes has another configuration than gw-1 \(pid 1\) \(4576ad\): gw-1 \(pid 2\) has ffffff\.$/,
    ],
    [
      'near',
      { config: { version: '4576ad000000', lastError: 'gateway.yaml:3:1: no\n  3 | plans: no\n    | ^' } },
      /^The configuration on disk is not valid, 4576ad stays in force: gateway\.yaml:3:1: no$/,
    ],
    [
      'near',
      { certificates: { listen: { notice: 'the certificate expires' } } },
      /^The certificate expires\.$/,
    ],
  ])('says what is wrong (%s): %o', (tone, change, text) => {
    const [first] = verdict({ state: { ...state, ...change }, totals, lastMinute: minute, nowMs });
    expect(first).toEqual({ tone, text: expect.stringMatching(text) });
  });

  it.each([
    ['failedByUpstream', 'at the upstream'],
    ['failedByGateway', 'in the gateway'],
  ])('says whose fault it is: %s', (name, whose) => {
    const [first] = verdict({ state, totals, lastMinute: { ...minute, [name]: 120 }, nowMs });
    expect(first?.text).toContain(`12 % of the requests of the last minute failed ${whose}`);
    // Four of them are no news.
    expect(verdict({ state, totals, lastMinute: { ...minute, [name]: 4 }, nowMs })[0]?.tone).toBe('well');
  });

  it('puts first what fails, and says the rest too', () => {
    const found = verdict({
      state: {
        ...state,
        config: { version: 'x', lastError: 'no' },
        store: { kind: 'redis', available: false, onFailure: 'local' },
      },
      totals,
      lastMinute: undefined,
      nowMs,
    });
    expect(found.map(({ tone }) => tone)).toEqual(['bad', 'near', 'near']);
  });
});
