import { expect, test } from 'vitest';
import { parseWrkOutput, problemsOf } from './run-wrk.ts';

const line =
  '{"requests":1000,"seconds":1.000000,"p50Us":500,"p99Us":900,"p999Us":1500,"maxUs":2000,"socketErrors":0,' +
  '"timeouts":0,"above399":0,"unexpected":0,"example":0}';
const figures = parseWrkOutput(`Running 1s test @ http://127.0.0.1:1\n  Latency 0.50ms\n${line}\n`);

test("the figures follow wrk's own summary", () => {
  expect(figures).toMatchObject({ requests: 1000, p50Us: 500, p999Us: 1500 });
});

test('output without figures is an error that shows it', () => {
  expect(() => parseWrkOutput('unable to connect to 127.0.0.1:1')).toThrow('unable to connect');
});

test.each([
  ['a clean run', {}, 200, 'measure', 0],
  ['a refusal among admissions', { above399: 1 }, 200, 'measure', 1],
  ['a wrong status that wrk does not count', { unexpected: 1, example: 302 }, 200, 'check', 1],
  ['a flood that is all refused', { above399: 1000 }, 429, 'measure', 0],
  ['a flood whose window began anew', { above399: 998 }, 429, 'measure', 0],
  ['a flood that is let through', { above399: 997 }, 429, 'measure', 1],
  ['a broken connection', { socketErrors: 3 }, 200, 'measure', 1],
  ['a request without a response', { timeouts: 1 }, 200, 'measure', 1],
  ['no response at all', { requests: 0 }, 200, 'measure', 1],
] as const)('%s', (_name, change, expectedStatus, mode, problems) => {
  expect(
    problemsOf({ ...figures, ...change }, { expectedStatus, mode }, 2 * Number(expectedStatus === 429)),
  ).toHaveLength(problems);
});
