import { describe, expect, it, test } from 'vitest';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { costsOfTest } from './costs-of-test.ts';
import { keyGroups, sumOver } from './key-groups.ts';
import { callsOf, type Fleet, loadOf, readShareOf, type Traffic } from './load.ts';
import { costsOfCalls } from './measure-gateway.ts';

describe('the division of requests among keys', () => {
  it('gives equal keys the same share', () => {
    expect(keyGroups(4, 0)).toEqual([{ keys: 4, share: 0.25 }]);
  });

  it('gives three keys under Zipf 1 shares of 1 : 1/2 : 1/3', () => {
    const shares = keyGroups(3, 1).map(({ share }) => (11 * share).toFixed(9));
    expect(shares).toEqual(['6.000000000', '3.000000000', '2.000000000']);
  });

  it.each([0.5, 1, 1.3, 2])(
    'in groups of a million keys is within 0.1 %% of single keys, exponent %f',
    (skew) => {
      const groups = keyGroups(1_000_000, skew);
      let [weights, smallRates] = [0, 0];
      for (let rank = 1; rank <= 1_000_000; rank++) weights += rank ** -skew;
      for (let rank = 1; rank <= 1_000_000; rank++)
        smallRates += Math.min(1, (1e5 * rank ** -skew) / weights);
      expect(sumOver(groups, () => 1)).toBe(1_000_000);
      expect(sumOver(groups, ({ share }) => share)).toBeCloseTo(1, 9);
      expect((groups[0]?.share ?? 0) * weights).toBeCloseTo(1, 2);
      const grouped = sumOver(groups, ({ share }) => Math.min(1, 1e5 * share));
      expect(Math.abs(grouped / smallRates - 1)).toBeLessThan(0.001);
    },
  );
});

describe('calls of one process for one key', () => {
  const costs = { turnSeconds: 0.001 };

  it('are one per request when requests are rare, and at most one per turn when they are frequent', () => {
    expect(callsOf(0.01, 0, costs)).toBeCloseTo(0.01, 6);
    expect(callsOf(1_000, 0, costs)).toBeCloseTo(1_000 * (1 - Math.exp(-1)), 6);
    expect(callsOf(1e6, 0, costs)).toBeCloseTo(1_000, 6);
  });

  it('are one a second for refusals, and one for fifty reported refusals, and never more than the refusals', () => {
    expect(callsOf(1_000, 1, costs)).toBeCloseTo(1_000 / 1_001 + 20, 6);
    expect(callsOf(0.01, 1, costs)).toBeCloseTo(0.01, 6);
  });

  it('grow with the requests', () => {
    const rates = Array.from({ length: 60 }, (_, step) => 10 ** (step / 8 - 3));
    for (const refused of [0, 0.3, 1]) {
      const calls = rates.map((rate) => callsOf(rate, refused, costs));
      expect(calls.every((value, at) => at === 0 || value > (calls[at - 1] ?? 0))).toBe(true);
      expect(calls.every((value, at) => value <= (rates[at] ?? 0) + 1e-9)).toBe(true);
    }
  });
});

test('a single call has its own read, and sixteen calls together share one', () => {
  expect(readShareOf(0)).toBe(1);
  expect(readShareOf(1e-6)).toBeCloseTo(1, 5);
  expect(readShareOf(16)).toBeCloseTo(1 / 16, 6);
});

test('the two costs of a call follow from the costs of three kinds of requests', () => {
  const cpuOf = (calls: number, readShare: number) => 70 + calls * (11 + readShare * 23);
  const kind = (perRequest: number, readShare: number) => ({
    ...{ perRequest, readShare },
    cpu: cpuOf(perRequest, readShare),
  });
  const { callCpu, callReadCpu } = costsOfCalls(kind(0.08, 1), kind(1.01, 0.1), kind(0.99, 0.7));
  expect([callCpu, callReadCpu].map((value) => value.toFixed(6))).toEqual(['11.000000', '23.000000']);
});

describe('the load of a fleet', () => {
  const traffic: Traffic = {
    requestsPerSecond: 1_000,
    groups: keyGroups(100, 0),
    refusedShare: 0,
    directory: true,
    recorded: true,
  };
  const fleet: Fleet = { processes: 10, perKey: 10, shards: 5, replicas: 2, targets: 3 };

  it('agrees with a computation by hand: 100 keys with one request a second at each of ten processes', () => {
    const load = loadOf(
      traffic,
      fleet,
      costsOfTest({
        requestCpu: 0.0001,
        callCpu: 0.00001,
        checkCpu: 0.001,
        decisionCpu: 0.00002,
        replicaCpu: 0.000001,
      }),
    );
    const decisions = 1_000 * ((1 - Math.exp(-0.001)) / 0.001);
    expect(load.decisions).toBeCloseTo(decisions, 6);
    // A process sends a key in the first round with 20 unsent requests. There are fewer than 20 requests after 10 s with probability 0.9965,
    // after 20 s with 0.4703, after 30 s with 0.0219, and after 40 s with 0.0002. The process therefore sends the key after 24.89 s.
    expect(load.batches).toBeCloseTo((10 * 100) / 24.89, 1);
    // A process reads a key again after a week, because Redis keeps the generation of the key for a week.
    expect(load.lookUps).toBeCloseTo((10 * 100) / 604_801, 9);
    // A process notes that a key is active at the key's first request after 60 s, which arrives after 61 s on average.
    expect(load.activeEntries).toBeCloseTo((10 * 100) / 61, 6);
    // Ten processes together check each of three targets ten times a second. Each process shares its results five times a second.
    expect(load.checks).toBe(30);
    expect(load.healthCalls).toBe(50);
    expect(load.gatewayCpu).toMatchObject({ requests: 0.1, checks: 0.03 + 50 * 0.00001 });
    expect(load.redisCpu.decisions).toBeCloseTo(decisions * 0.00002, 9);
    expect(load.redisCpu.replicas).toBeCloseTo((decisions + load.batches) * 2 * 0.000001, 9);
    expect(load.hottest.requests).toBeCloseTo(10, 9);
    expect(load.held).toMatchObject({ remembered: 100 });
    expect(load.held.recorded).toBeCloseTo(100, 6);
  });

  it('has fewer calls, batches and look-ups, and fewer keys in each process, with fewer processes per key', () => {
    const costs = costsOfTest({});
    const [all, few] = [10, 2].map((perKey) =>
      loadOf({ ...traffic, requestsPerSecond: 1e6 }, { ...fleet, perKey }, costs),
    );
    for (const name of ['decisions', 'batches', 'lookUps', 'activeEntries'] as const) {
      expect(few?.[name]).toBeLessThan((all?.[name] ?? 0) * 0.6);
    }
    expect(few?.held.recorded).toBeCloseTo(20, 6);
  });

  it('has more reads when there are more keys than a process can cache', () => {
    const many: Traffic = { ...traffic, requestsPerSecond: 1e6, groups: keyGroups(1_000_000, 0) };
    const one = { ...fleet, processes: 1, perKey: 1 };
    const costs = costsOfTest({ packedKeyBytes: defaultBounds.directoryPackedBytesMax / 50_000 });
    const { lookUps, held } = loadOf(many, one, costs);
    // A process caches 100,000 of a million keys, half of them packed, so nine of ten requests need a read.
    expect(lookUps).toBeCloseTo(900_000, -3);
    expect(held).toMatchObject({ directory: 50_000, packed: 50_000 });
    // The process adds at most the keys for which the index has room, once a minute.
    expect(loadOf(many, one, costs).activeEntries).toBeCloseTo(10_000 / 60, 6);
    const roomForAll = loadOf(many, one, costsOfTest({ packedKeyBytes: 160 }));
    expect(roomForAll.lookUps).toBeLessThan(2);
    expect(roomForAll.held).toMatchObject({ directory: 50_000, packed: 950_000 });
  });

  it('has no look-ups and batches without directory and record', () => {
    const load = loadOf({ ...traffic, directory: false, recorded: false }, fleet, costsOfTest({}));
    expect(load).toMatchObject({ lookUps: 0, batches: 0, activeEntries: 0 });
    expect(load.held).toMatchObject({ directory: 0, recorded: 0 });
  });
});
