import type { KnownProcess } from '../../gateway/fleet/presence.ts';

/** The published state of a healthy, idle process. */
export function processState(id: string, members: Partial<KnownProcess> = {}): KnownProcess {
  return {
    ...{ id, host: 'h', pid: 1, startedAt: '2026-11-22T00:00:00.000Z', phase: 'serving' },
    ...{ configVersion: 'v', configLoadedAt: '2026-11-22T00:00:00.000Z' },
    ...{ requestsPerSecond: 0, failuresPerSecond: 0, outcomes: {}, inFlight: 0, connections: 0 },
    lastMinute: {
      requests: 0,
      failed: { gateway: { requests: 0 }, upstream: { requests: 0 } },
      upstreams: [],
    },
    store: { kind: 'redis', available: true },
    upstreams: [],
    faults: [],
    ageMs: 0,
    ...members,
  };
}
