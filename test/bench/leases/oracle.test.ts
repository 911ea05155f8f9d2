import { describe, expect, it } from 'vitest';
import { judge, type LoggedRequest } from './oracle.ts';

const limit = 2;
const request = (beganUs: number, kind: LoggedRequest['kind'], remaining: number): LoggedRequest => ({
  ...{ beganUs, endedUs: beganUs + 5, kind, remaining },
  ...{ window: 7, beganIn: 7 },
});

describe('the oracle of the experiment with leases', () => {
  it('finds no fault in decisions of a sequential limiter', () => {
    const verdict = judge(
      [request(0, 'admitted', 1), request(10, 'admitted', 0), request(20, 'refused', 0)],
      limit,
    );
    expect(verdict).toEqual({
      ...{ admitted: 2, refused: 1, unknown: 0, over: 0, afterWindow: 0, refusedThoughFits: 0, neverUsed: 0 },
      ...{ deviationMean: 0, deviationMax: 0, shownTwice: 0 },
    });
  });

  it('accepts any order of concurrent requests', () => {
    const requests = [request(3, 'refused', 0), request(0, 'admitted', 0), request(4, 'admitted', 1)];
    expect(judge(requests, limit)).toMatchObject({ refusedThoughFits: 0, deviationMax: 0 });
  });

  it('counts a refusal before a unit that a later request gets', () => {
    const requests = [request(0, 'admitted', 1), request(10, 'refused', 0), request(20, 'admitted', 0)];
    expect(judge(requests, limit)).toMatchObject({ refusedThoughFits: 1, neverUsed: 0 });
  });

  it('counts every refusal of a window whose last unit no request gets', () => {
    const requests = [request(0, 'admitted', 1), request(10, 'refused', 0), request(20, 'refused', 0)];
    expect(judge(requests, limit)).toMatchObject({ refusedThoughFits: 2, neverUsed: 1 });
  });

  it('assumes that a request of a dead process was charged', () => {
    const unknown = { ...request(10, 'unknown', 0), endedUs: Number.POSITIVE_INFINITY };
    const requests = [request(0, 'admitted', 1), unknown, request(20, 'refused', 0)];
    expect(judge(requests, limit)).toMatchObject({ refusedThoughFits: 0, neverUsed: 0, unknown: 1 });
  });

  it('counts units over the limit, and requests that are charged to a window that has ended', () => {
    const late = { ...request(20, 'admitted', 0), beganIn: 8 };
    const requests = [request(0, 'admitted', 1), request(10, 'admitted', 0), late];
    expect(judge(requests, limit)).toMatchObject({ over: 1, afterWindow: 1 });
  });

  it('measures how far a shown remaining is from each possible remaining', () => {
    const requests = [request(0, 'admitted', 0), request(10, 'admitted', 0)];
    expect(judge(requests, limit)).toMatchObject({ deviationMax: 1, deviationMean: 0.5, shownTwice: 1 });
  });
});
