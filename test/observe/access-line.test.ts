import { describe, expect, it } from 'vitest';
import { accessLine } from '../../gateway/observe/access-line.ts';
import { Exchange } from '../../gateway/request/exchange.ts';
import { keyMembers, operationMember } from '../../gateway/request/log-members.ts';
import type { ClientResponse } from '../../gateway/request/respond/client-response.ts';
import type { Snapshot } from '../../gateway/request/snapshot.ts';
import type { RateLimitState } from '../../gateway/shared/model.ts';

const inForce = { name: 'minute', limit: 60, remaining: 59, resetMs: 60_000, windowSeconds: 60 } as const;
const rateLimit: RateLimitState = { nowMs: 1_000, windows: [inForce], inForce };

/** Creates an exchange with the given members and header fields. */
function exchange(
  found: Partial<Exchange>,
  kind: 'request' | 'rejection' = 'request',
  headers: Record<string, string> = {},
): Exchange {
  const req = { method: 'GET', headers, socket: { remoteAddress: '2001:db8::1' } };
  const snapshot = { settings: { version: '0123456789ab' } };
  const opened = new Exchange({ kind, res: { req } as ClientResponse }, snapshot as Snapshot);
  return { ...opened, id: '6f1f2f3a-0000-4000-8000-000000000001', status: 200, ...found };
}

describe('the access line', () => {
  it('is one line of JSON without unknown fields', () => {
    const line = accessLine(exchange({ status: 499, fault: 'client' }));
    expect(line.indexOf('\n')).toBe(line.length - 1);
    expect(JSON.parse(line)).toEqual({
      level: 30,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      requestId: '6f1f2f3a-0000-4000-8000-000000000001',
      method: 'GET',
      status: 499,
      fault: 'client',
      address: '2001:db8::1',
      totalMs: expect.any(Number),
      config: '0123456789ab',
    });
  });

  it.each([
    ['minute', 'minute'],
    ['banned', 'banned'],
    ['admitted', undefined],
    [undefined, undefined],
  ] as const)('of a request for which the trial decides %s has the trial %s', (trial, shown) => {
    const decision = {
      kind: 'admitted',
      units: 1,
      source: 'shared',
      rateLimit,
      ...(trial && { trial }),
    } as const;
    expect(JSON.parse(accessLine(exchange({ decision }))).trial).toBe(shown);
  });

  it.each([
    [{ reason: 'abuse' }, true],
    [undefined, undefined],
  ])('of a banned request has the end of the ban, and whether an operator made it: %j', (byHand, shown) => {
    const ban = { untilMs: 1_796_000_000_000, retryAtMs: 1_796_000_000_000, ...(byHand && { byHand }) };
    const decision = {
      kind: 'banned',
      units: 1,
      source: 'shared',
      retryAtMs: 0,
      rateLimit: { ...rateLimit, ban },
    } as const;
    const line = JSON.parse(accessLine(exchange({ decision })));
    expect([line.bannedUntil, line.byHand]).toEqual(['2026-11-30T00:53:20.000Z', shown]);
  });

  it('has the texts of clients and configuration exactly, with any characters', () => {
    const hostile = 'a"b\\c\nd\u2028é\u0000';
    const line = accessLine(
      exchange({
        path: `/v1/${hostile}`,
        offered: { logged: operationMember({ id: hostile }) } as Exchange['offered'],
        key: { logged: keyMembers({ id: hostile, plan: hostile }, '01234567') } as Exchange['key'],
        cause: hostile,
        decision: { kind: 'admitted', units: 1, source: 'shared', rateLimit },
        upstream: { target: '[::1]:3000', attempts: 2, upstreamMs: 1.23456 },
      }),
    );
    expect(line.indexOf('\n')).toBe(line.length - 1);
    expect(JSON.parse(line)).toMatchObject({
      path: `/v1/${hostile}`,
      operation: hostile,
      keyId: hostile,
      plan: hostile,
      secret: '01234567',
      cause: hostile,
      decision: 'admitted',
      source: 'shared',
      window: 'minute',
      limit: 60,
      remaining: 59,
      target: '[::1]:3000',
      attempts: 2,
      upstreamMs: 1.235,
    });
  });

  it('does not show a path segment that may be a key', () => {
    const line = accessLine(exchange({ path: '/v1/pets/tg_live_0123456789abcdef/photos' }));
    expect(JSON.parse(line)).toMatchObject({ path: '/v1/pets/…/photos' });
  });

  it.each([
    [{ status: 'unknown', digestStart: '01234567' }, undefined],
    [{ status: 'expired', digestStart: '01234567', keyId: 'ac"me' }, 'ac"me'],
    [{ status: 'disabled', digestStart: '01234567', keyId: 'acme' }, 'acme'],
  ] as const)('states why a secret was not valid, and its owner: %j', (invalidSecret, keyId) => {
    const line = JSON.parse(accessLine(exchange({ status: 401, errorCode: 'invalid_key', invalidSecret })));
    expect([line.keyStatus, line.keyId, line.secret, line.plan]).toEqual([
      invalidSecret.status,
      keyId,
      '01234567',
      undefined,
    ]);
  });

  it('has the client’s trace id, so that the trace leads to it', () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    expect(JSON.parse(accessLine(exchange({}, 'request', { traceparent })))).toMatchObject({
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    });
    expect(accessLine(exchange({}, 'request', { traceparent: `${traceparent}"` }))).not.toContain('traceId');
  });

  it('has the ids of its span, if the request is recorded in a trace', () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };
    const line = accessLine(exchange({ trace }, 'request', { traceparent }));
    expect(JSON.parse(line)).toMatchObject(trace);
  });

  it('has no method for something that is not a request', () => {
    const decision = { kind: 'counted', source: 'memory', rateLimit } as const;
    const found = { status: 400, errorCode: 'invalid_request', fault: 'client', decision } as const;
    const { method, ...members } = JSON.parse(accessLine(exchange(found, 'rejection')));
    expect(method).toBeUndefined();
    expect(members).toMatchObject({
      status: 400,
      error: 'invalid_request',
      fault: 'client',
      window: 'minute',
    });
  });
});
