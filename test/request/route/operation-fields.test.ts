import { describe, expect, it } from 'vitest';
import { operationFields } from '../../../gateway/request/route/operation-fields.ts';
import { isGone } from '../../../gateway/request/route/operation-table.ts';
import type { Operation } from '../../../gateway/shared/model.ts';

const sunsetMs = Date.UTC(2030, 11, 5);
const getPet: Operation = {
  id: 'getPet',
  method: 'GET',
  template: '/pets/{petId}',
  upstream: 'store',
  deprecation: { sinceMs: Date.UTC(2026, 10, 20), sunsetMs, successor: '/pets', afterSunset: 'gone' },
};

describe('operationFields', () => {
  it('a deprecated operation has the dates of its deprecation and sunset, and links to its successor', () => {
    expect(operationFields(getPet, '/v1')).toEqual([
      'Deprecation',
      '@1795132800',
      'Sunset',
      'Thu, 05 Dec 2030 00:00:00 GMT',
      'Link',
      '</v1/pets>; rel="successor-version"',
    ]);
  });

  it('the path of a successor is escaped for a header field', () => {
    const successor = '/v2/{případ}/{a"b>}';
    const operation: Operation = { ...getPet, deprecation: { sinceMs: 0, successor, afterSunset: 'gone' } };
    expect(operationFields(operation, '/v1')).toContain(
      '</v1/v2/{p%C5%99%C3%ADpad}/{a%22b%3E}>; rel="successor-version"',
    );
  });

  it('a stability marker and a cost other than 1 become fields; an operation without either has no fields', () => {
    const listPets: Operation = { id: 'listPets', method: 'GET', template: '/pets', upstream: 'store' };
    expect(operationFields({ ...listPets, stability: 'beta' }, '/v1')).toEqual(['X-Stability', 'beta']);
    for (const cost of [0, 5]) {
      expect(operationFields({ ...listPets, cost }, '/v1')).toEqual(['X-RateLimit-Cost', String(cost)]);
    }
    expect(operationFields({ ...listPets, cost: 1 }, '/v1')).toEqual([]);
    expect(operationFields(listPets, '/v1')).toEqual([]);
  });
});

describe('isGone', () => {
  it('is true from the instant of the sunset on, and not before', () => {
    expect(isGone(getPet, sunsetMs - 1)).toBe(false);
    expect(isGone(getPet, sunsetMs)).toBe(true);
  });

  it('is false after the sunset when the document says so', () => {
    const kept: Operation = { ...getPet, deprecation: { sinceMs: 0, sunsetMs, afterSunset: 'serve' } };
    expect(isGone(kept, sunsetMs)).toBe(false);
  });
});
