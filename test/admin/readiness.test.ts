import { describe, expect, it } from 'vitest';
import { type GatewayState, judgeReadiness } from '../../gateway/admin/readiness.ts';

const healthy: GatewayState = {
  phase: 'serving',
  environment: 'test',
  config: { version: '0123456789ab', loadedAt: '2026-11-21T00:00:00.000Z' },
  store: { kind: 'redis', available: true, onFailure: 'local' },
  upstream: { targets: [{ address: '127.0.0.1:3000', healthy: true, full: false }] },
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
    expect(judged({ upstream: { targets: [] } })).toEqual([200, 'degraded', 1]);
    const busy = { address: '127.0.0.1:3000', healthy: true, full: true };
    expect(judged({ upstream: { targets: [busy] } })).toEqual([200, 'degraded', 1]);
    expect(judged({ config: { ...healthy.config, lastError: 'x' } })).toEqual([200, 'degraded', 1]);
  });

  it('is not ready while starting or draining, or when it would refuse everything', () => {
    expect(judged({ phase: 'starting' })).toEqual([503, 'unavailable', 1]);
    expect(judged({ phase: 'draining', upstream: { targets: [] } })).toEqual([503, 'unavailable', 2]);
    expect(judged({ store: { kind: 'redis', available: false, onFailure: 'refuse' } })).toEqual([
      503,
      'unavailable',
      1,
    ]);
  });
});
