import { describe, expect, it, test } from 'vitest';
import { readCommand } from './inputs.ts';
import { countsIn } from './redis-counts.ts';
import { type BenchmarkPart, type Measured, unitCostsOf, whyUnusable } from './unit-costs.ts';

const needed = ['--requests', '1e6', '--keys', '1e6'];

describe('the command line', () => {
  it('accepts numbers such as 1e6, and a missing option has a default or follows from the others', () => {
    expect(readCommand([...needed, '--replicas', '2'])).toMatchObject({
      kind: 'print',
      inputs: {
        requestsPerSecond: 1_000_000,
        activeKeys: 1_000_000,
        replicas: 2,
        targets: 200,
        directory: true,
      },
    });
    expect(readCommand(['--requests', '10', '--keys', '100000'])).toMatchObject({
      inputs: { directory: false },
    });
  });

  it.each([
    [['--keys', '5'], /^--requests is missing/],
    [['--requests', '5'], /^--keys is missing/],
    [[...needed, '--requests', 'many'], /^--requests must be a number .* not "many"/],
    [[...needed, '--requests', ''], /^--requests must be a number/],
    [[...needed, '--requests', '-1'], /--requests/],
    [[...needed, '--keys', '1.5'], /^--keys must be a whole number .* not "1.5"/],
    [[...needed, '--replicas', '6'], /^--replicas must be a whole number from 0 to 5/],
    [[...needed, '--headroom', '1'], /^--headroom must be a number from 0 to 0.95/],
    [[...needed, '--refused', 'NaN'], /^--refused must be a number from 0 to 1/],
    [[...needed, '--active-keys', '2e6'], /^--active-keys must not be more than --keys/],
    [[...needed, '--colour', 'red'], /colour/],
    [[...needed, 'extra'], /extra/],
  ])('%j is refused with a sentence that names the option', (args, message) => {
    expect(() => readCommand(args)).toThrow(message);
  });
});

describe('unit costs', () => {
  const sample = (cpuSecondsPer10k: number, redisCallsPerRequest: number) => ({
    cpuSecondsPer10k,
    redisCallsPerRequest,
  });
  const report: BenchmarkPart = {
    started: '2026-11-22T10:00:00.000Z',
    problems: [],
    machine: {},
    scenarios: [
      {
        name: 'hot-key',
        subjects: [
          { name: 'tollgate', samples: [sample(0.8, 0.1)] },
          { name: 'backend direct', samples: [sample(0.4, 0)] },
        ],
      },
      { name: 'flood', subjects: [{ name: 'tollgate', samples: [sample(0.3, 0)] }] },
    ],
  };
  const measured = {
    started: '2026-11-22T12:00:00.000Z',
    machine: {},
    quick: false,
    directCpu: 0.00002,
    costs: { callCpu: 0.00001, callReadCpu: 0.00003, turnSeconds: 0.001, countsBytes: 250 },
    fleet: [],
  } as unknown as Measured;

  it('of two runs are stated at the speed of one run, so the costs of a machine of half the speed are halved', () => {
    const { values, sources } = unitCostsOf(report, measured);
    expect(values).toMatchObject({
      callCpu: 0.00002,
      turnSeconds: 0.002,
      countsBytes: 250,
    });
    expect(values.refusedCpu).toBeCloseTo(0.00003, 12);
    // A request makes 0.1 calls to Redis on average. The cost of a request does not include these calls.
    expect(values.requestCpu).toBeCloseTo(0.00008 - 0.1 * 0.00008, 12);
    expect(sources.requestCpu).toContain('bench 2026-11-22T10:00');
    const then = unitCostsOf(report, measured, 'measurement').values;
    expect(then).toMatchObject({ callCpu: 0.00001, turnSeconds: 0.001 });
    // This machine has measured only the backend, and is four times as fast as the machine of the benchmark.
    const here = unitCostsOf(report, measured, 0.00001);
    expect(here.values).toMatchObject({ callCpu: 0.000005, turnSeconds: 0.0005, countsBytes: 250 });
    expect(here.values.requestCpu).toBeCloseTo(values.requestCpu / 4, 12);
    expect(here.machine).toContain('takes 0.25× the CPU');
  });

  it.each([
    ['of another file', { ...report, scenarios: undefined }, /not a report/],
    ['of an invalid run', { ...report, problems: ['3 socket errors'] }, /3 socket errors/],
    [
      'without a scenario',
      { ...report, scenarios: report.scenarios.slice(0, 1) },
      /no sample of tollgate in .* flood/,
    ],
  ])('are not taken from a report %s, and the reason is given', (_, other, why) => {
    expect(whyUnusable(other as BenchmarkPart)).toMatch(why);
    expect(whyUnusable(report)).toBeUndefined();
  });
});

test('the counts of Redis distinguish scripts by the commands that only one script uses', () => {
  const info = [
    'used_cpu_sys:1.500000',
    'used_cpu_user:2.250000',
    'total_net_input_bytes:1000',
    'total_net_output_bytes:500',
    'total_net_repl_output_bytes:70',
    'used_memory:9000',
    'used_memory_rss:99999',
    'mem_clients_normal:1000',
    'mem_clients_slaves:500',
    'cmdstat_evalsha:calls=90,usec=1',
    'cmdstat_eval:calls=3,usec=1',
    'cmdstat_time:calls=83,usec=1',
    'cmdstat_expireat:calls=20,usec=1',
    'cmdstat_zrangebyscore:calls=8,usec=1',
    'cmdstat_get:calls=11,usec=1',
    'cmdstat_getdel:calls=77,usec=1',
  ].join('\r\n');
  expect(countsIn(info)).toEqual({
    ...{ cpuSeconds: 3.75, octets: 1_500, replicatedOctets: 70, memoryBytes: 7_500 },
    ...{ decisions: 72, batches: 20, batchCalls: 10, presences: 8, lookUps: 3 },
  });
});
