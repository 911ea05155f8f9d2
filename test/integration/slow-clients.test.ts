// The test with greedy keys has a small counterpart in `npm test`, which is `request/forward/slow-clients.test.ts`.
import { describe, expect, it } from 'vitest';
import { greeds, measureGreedyKeys } from '../faults/greedy-keys.ts';
import { measureSlowClients } from '../faults/slow-clients.ts';
import { measureSoak } from '../faults/soak.ts';
import { measureStrayOctets } from '../faults/stray-octets.ts';

for (const idle of [400, 4_000])
  it(`good requests beside ${idle} idle sockets and slow clients all get responses, and the sockets are freed`, {
    tags: idle === 400 ? [] : ['full'],
  }, async () => {
    const found = await measureSlowClients({
      idle,
      slow: idle === 400 ? 10 : 30,
      goodRequests: idle === 400 ? 150 : 400,
      bounds: {
        headersTimeoutMs: 5_000,
        requestTimeoutMs: 5_000,
        writeTimeoutMs: 3_000,
        clientReadAheadMaxMs: 3_000,
        keepAliveTimeoutMs: 5_000,
        connectionsCheckingIntervalMs: 200,
      },
    });
    expect(found.failures).toEqual([]);
    expect(found.good).toEqual({ 200: idle === 400 ? 300 : 800 });
    expect(found.descriptors.after).toBeLessThanOrEqual(found.descriptors.before + 10);
  });

describe.each(greeds)('beside keys whose client %s', (greed) => {
  it('of 8 keys, every other key is served and the backend has free connections', {
    tags: 'full',
  }, async () => {
    const found = await measureGreedyKeys({
      greed,
      keys: 8,
      clients: 60,
      goodRequests: 400,
      bounds: {
        connectionsPerTargetMax: 18,
        clientGraceMs: 1_000,
        clientAheadMaxMs: 2_000,
        clientReadAheadMaxMs: 2_000,
        sweepIntervalMs: 100,
        lingerTimeoutMs: 100,
      },
    });
    expect(found.failures).toEqual([]);
    expect(found.good).toEqual({ 200: 800 });
    expect(found.heldAtBackend).toBeLessThan(36);
    const end = greed === 'reads no response' ? '499 client' : '408 client';
    expect(Object.keys(found.greedyEnds)).toEqual([end]);
  });
});

for (const requests of [1_000, 4_000])
  it(`stray octets of a backend after the response to one key never reach another key, in ${requests} requests`, {
    tags: requests === 1_000 ? [] : ['full'],
  }, async () => {
    const found = await measureStrayOctets({ requests });
    expect(found.crossed).toEqual([]);
    expect(found.failures).toEqual([]);
    expect(found.shared).toBeGreaterThan(0);
  });

it('clients that connect and leave keep no descriptor open', { tags: 'full' }, async () => {
  const found = await measureSoak({ seconds: 3 });
  expect(found.failures).toEqual([]);
  expect(found.descriptors.after).toBeLessThanOrEqual(found.descriptors.before + 10);
});
