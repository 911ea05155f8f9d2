import { describe, expect, it } from 'vitest';
import { type GatewayState, judgeReadiness } from '../../gateway/admin/readiness.ts';

function upstreamWith(...targets: { address: string; healthy: boolean; full: boolean }[]) {
  return { url: 'http://store:3000', targets };
}

const healthy: GatewayState = {
  phase: 'serving',
  environment: 'test',
  config: { version: '0123456789ab', loadedAt: '2026-11-21T00:00:00.000Z' },
  store: { kind: 'redis', available: true, onFailure: 'local' },
  upstreams: { default: upstreamWith({ address: '127.0.0.1:3000', healthy: true, full: false }) },
};

function judged(change: Partial<GatewayState>) {
  const { httpStatus, body } = judgeReadiness({ ...healthy, ...change });
  return [httpStatus, body.status, body.reasons.length];
}

describe('judgeReadiness', () => {
  it('is ok while everything is as it should be', () => {
    expect(judged({})).toEqual([200, 'ok', 0]);
    expect(judged({ store: { kind: 'memory' } })).toEqual([200, 'ok', 0]);
  });

  it('stays ready, degraded, for what all replicas share', () => {
    expect(judged({ store: { kind: 'redis', available: false, onFailure: 'local' } })).toEqual([
      200,
      'degraded',
      1,
    ]);
    expect(judged({ upstreams: { default: upstreamWith() } })).toEqual([200, 'degraded', 1]);
    const busy = { address: '127.0.0.1:3000', healthy: true, full: true };
    expect(judged({ upstreams: { default: upstreamWith(busy) } })).toEqual([200, 'degraded', 1]);
    expect(judged({ config: { ...healthy.config, lastError: 'x' } })).toEqual([200, 'degraded', 1]);
  });

  it('says which upstream a reason is about where there are several', () => {
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

  it('is not ready while starting or draining, or when it would refuse everything', () => {
    expect(judged({ phase: 'starting' })).toEqual([503, 'unavailable', 1]);
    expect(judged({ phase: 'draining', upstreams: { default: upstreamWith() } })).toEqual([
      503,
      'unavailable',
      2,
    ]);
    expect(judged({ store: { kind: 'redis', available: false, onFailure: 'refuse' } })).toEqual([
      503,
      'unavailable',
      1,
    ]);
  });
});
