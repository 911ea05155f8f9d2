import { expect, test } from 'vitest';
import { type Report, renderReport } from './report.ts';
import type { Sample } from './scenarios.ts';

function sample(cpuSecondsPer10k: number): Sample {
  return {
    cpuSecondsPer10k,
    userCpuSecondsPer10k: cpuSecondsPer10k * 0.75,
    systemCpuSecondsPer10k: cpuSecondsPer10k * 0.25,
    redisCpuSecondsPer10k: 0.1,
    redisCallsPerRequest: 1,
    requestsPerSecond: 10_000,
    p50Us: 1_000,
    p99Us: 2_000,
    p999Us: 3_000,
  };
}

function reportOf(own: readonly Sample[], other?: readonly Sample[], otherName = 'nginx + lua'): Report {
  return {
    started: '2026-11-21T10:00:00.000Z',
    machine: { node: 'v24' },
    quick: false,
    rounds: own.length,
    decidedLocally: 0,
    pinning: 'The subject is pinned to CPU 0.',
    problems: [],
    missing: ['haproxy (apt-get install haproxy)'],
    scenarios: [
      {
        name: 'hot-key',
        title: 'One hot key',
        subjects: [
          { name: 'tollgate', job: 'the whole job', samples: own },
          ...(other === undefined ? [] : [{ name: otherName, job: 'the whole job', samples: other }]),
        ],
      },
    ],
    connections: [],
    tls: [],
    keys: [],
  };
}

test('a target is met up to its figure and missed above it', () => {
  const row = (own: number) =>
    renderReport(reportOf([sample(own)], [sample(1)]))
      .split('\n')
      .find((line) => line.startsWith('| CPU, one hot key: against nginx + lua'));
  expect(row(0.85)).toMatch(/\| 0\.85× \| 0\.85× \(0\.85×–0\.85×\) \| yes \|$/);
  expect(row(0.9)).toMatch(/\| 0\.85× \| 0\.90× \(0\.90×–0\.90×\) \| NO \|$/);
});

test('the report shows the CPU of tollgate as a multiple of an earlier commit, alone and with Redis', () => {
  const text = renderReport(reportOf([sample(1)], [sample(0.8)], 'before'));
  expect(text).toMatch(/\| hot-key \| 1\.25× \(.*\) \| 1\.22× \(.*\) \|/);
});

test('the report shows the CPU of the gateway alone, and the CPU with the share of Redis', () => {
  const text = renderReport(reportOf([sample(0.8)], [{ ...sample(1), redisCpuSecondsPer10k: 0.5 }]));
  expect(text).toContain("one hot key, with Redis's share: against nginx + lua | 0.85× | 0.60×");
});

test('the report has user and system CPU beside their sum, and the CPU that the subject ran on', () => {
  const text = renderReport(reportOf([sample(1), sample(2)]));
  expect(text).toContain('| 1.50 (1.00–2.00) | 1.13 | 0.38 |');
  expect(text).toContain('The subject is pinned to CPU 0.');
});

test('the report lists missing measurements and missing programs', () => {
  const text = renderReport(reportOf([sample(1)]));
  expect(text).toContain('not measured');
  expect(text).toContain('haproxy (apt-get install haproxy)');
});

test('a run with an unexpected response is called invalid, with the scenario and subject', () => {
  const problems = ['hot-key, tollgate: 3 of 10 responses were not 200'];
  expect(renderReport({ ...reportOf([sample(1)]), problems })).toContain(`**INVALID:** ${problems[0]}`);
});

test.each([
  ['yes', 50, 200_000],
  ['NO', 51, 200_000],
  ['NO', 50, 200_001],
])('the figure of /metrics is met (%s) at %i ms and %i octets', (met, median, bytes) => {
  const metrics = { keys: 10_000, operations: 50, bytes, ms: { median, min: 1, max: 99 }, cpuMs: 1 };
  const line = renderReport({ ...reportOf([sample(1)]), metrics })
    .split('\n')
    .find((line) => line.startsWith('| 10,000 | 50 |'));
  expect(line).toMatch(new RegExp(`\\| ${met} \\|$`));
});
