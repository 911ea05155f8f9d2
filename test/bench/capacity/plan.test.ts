import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { costsOfTest } from './costs-of-test.ts';
import { readInputs } from './inputs.ts';
import { planFleet } from './plan.ts';
import { wallsOf } from './walls.ts';

const plain = {
  requests: '1e6',
  keys: '1e6',
  refused: '0',
  skew: '0',
  headroom: '0.5',
  'keep-days': '0',
  directory: '0',
};
const inputsOf = (more: Readonly<Record<string, string>>) => readInputs({ ...plain, ...more });

describe('a fleet, as computed by hand,', () => {
  const costs = costsOfTest({
    requestCpu: 0.0001,
    decisionCpu: 0.00002,
    countsBytes: 250,
    processBytes: 100,
  });

  it('has 100 cores for a million requests of 100 µs, 200 with half of each free, and half as many again for a zone', () => {
    const plan = planFleet(inputsOf({}), costs);
    expect(plan).toMatchObject({ processes: 300, processesLeft: 200 });
    expect(plan.coreUse).toBeCloseTo(1 / 3, 6);
    expect(plan.coreUseLeft).toBeCloseTo(0.5, 6);
    // A million requests a second with 20 µs each require 20 cores. With half of each core free, 40 masters are needed.
    expect(plan).toMatchObject({ shards: 40, shardsForCpu: 40, shardsForMemory: 1 });
    expect(plan.redisBytes).toEqual({ counts: 250e6, directory: 0, record: 0, totals: 0 });
  });

  it('with one zone has no reserve', () => {
    expect(planFleet(inputsOf({ zones: '1' }), costs)).toMatchObject({ processes: 200, processesLeft: 200 });
  });

  it('has as many masters as memory needs when memory needs more than CPU, because the record pauses at 70 % of a server', () => {
    const big = costsOfTest({ requestCpu: 0.0001, countsBytes: 2 ** 20 });
    const plan = planFleet(inputsOf({ keys: String(70 * 1_024), 'shard-memory': '1' }), big);
    expect(plan).toMatchObject({ shards: 100, shardsForMemory: 100 });
  });

  it('gives a hot key the rate of its master, or the rate of its processes if that is lower', () => {
    const hot = costsOfTest({ requestCpu: 0.0001, hotDecisionCpu: 0.00001 });
    const wide = planFleet(inputsOf({}), hot);
    expect(wide.hotKeyCallsMax).toBeCloseTo(50_000, 6);
    expect(wide.hotKeyRequestsMax).toBeCloseTo(-300_000 * Math.log(1 - 1 / 6), 3);
    expect(planFleet(inputsOf({ 'per-key': '49' }), hot).hotKeyRequestsMax).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a fleet for random inputs', () => {
  const costs = costsOfTest({
    ...{
      requestCpu: 7e-5,
      refusedCpu: 3e-5,
      callCpu: 1e-5,
      callReadCpu: 2e-5,
      batchCpu: 3e-5,
      lookUpCpu: 7e-5,
    },
    ...{ decisionCpu: 1.3e-5, hotDecisionCpu: 1.1e-5, readCpu: 1e-5, usageCpu: 8e-5, senderCpu: 2e-7 },
    ...{
      readKeyCpu: 4e-5,
      activeKeyCpu: 6e-7,
      presenceCpu: 2e-5,
      healthCpu: 2e-5,
      operationsCpu: 4e-4,
      replicaCpu: 1e-6,
      checkCpu: 8e-5,
    },
    ...{ countsBytes: 250, directoryBytes: 950, usageDayBytes: 400, usageMinuteBytes: 3, totalsBytes: 4_000 },
    ...{ recordedKeyBytes: 2_000, rememberedKeyBytes: 400, heldKeyBytes: 600, processBytes: 1.5e8 },
  });
  const asked = fc.record({
    requests: fc.double({ min: 10, max: 2e6, noNaN: true }),
    keys: fc.integer({ min: 1, max: 1e7 }),
    skew: fc.constantFrom(0, 0.7, 1, 1.5),
    refused: fc.constantFrom(0, 0.05, 0.5),
    replicas: fc.integer({ min: 0, max: 3 }),
    zones: fc.integer({ min: 1, max: 4 }),
  });
  const planOf = (options: Readonly<Record<string, number>>) =>
    planFleet(
      readInputs(Object.fromEntries(Object.entries(options).map(([name, value]) => [name, String(value)]))),
      costs,
    );

  it('keeps the headroom of every core, also with one zone down, and the memory of every server of Redis', () => {
    fc.assert(
      fc.property(asked, (options) => {
        const plan = planOf(options);
        expect(plan.coreUseLeft).toBeLessThanOrEqual(0.6 + 1e-6);
        expect(plan.coreUse).toBeLessThanOrEqual(0.6 + 1e-6);
        expect(plan.processes % options.zones).toBe(0);
        expect(plan.shards).toBeGreaterThanOrEqual(3);
        const { counts, directory, record, totals } = plan.redisBytes;
        expect((counts + directory + record + totals) / plan.shards).toBeLessThanOrEqual(0.7 * 16 * 2 ** 30);
      }),
      { numRuns: 60 },
    );
  });

  it('never shrinks with more requests', () => {
    fc.assert(
      fc.property(asked, (options) => {
        const [one, more] = [planOf(options), planOf({ ...options, requests: options.requests * 1.5 })];
        expect(more.processes).toBeGreaterThanOrEqual(one.processes);
        expect(more.shards).toBeGreaterThanOrEqual(one.shards);
        expect(more.load.decisions).toBeGreaterThan(one.load.decisions);
      }),
      { numRuns: 40 },
    );
  });

  it('lists the bottlenecks in order, each with the load that reaches it', () => {
    const inputs = readInputs({ requests: '1e5', keys: '1e6' });
    const walls = wallsOf(inputs, costs);
    const at = walls.map(({ comesAt }) => comesAt);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    for (const { name, comesAt, used } of walls) {
      expect(used >= 1, name).toBe(comesAt <= inputs.requestsPerSecond);
      if (!Number.isFinite(comesAt)) continue;
      const factor = comesAt / inputs.requestsPerSecond;
      const there = wallsOf(
        {
          ...inputs,
          requestsPerSecond: comesAt,
          connections: inputs.connections * factor,
          targets: inputs.targets * factor,
        },
        costs,
      );
      // The number of processes is whole, so the figures increase in steps.
      expect(there.find((wall) => wall.name === name)?.used, name).toBeGreaterThan(0.9);
    }
  });
});
