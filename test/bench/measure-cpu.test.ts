import { expect, test } from 'vitest';
import { parseStat, residentBytes, treeCpuSeconds } from './measure-cpu.ts';

test('a command name with brackets and spaces does not shift the fields', () => {
  const text = '42 (nginx: (worker) x) S 7 42 42 0 -1 4194304 100 0 0 0 11 22 3 4 20 0 1 0 99 1000 10';
  expect(parseStat(text)).toEqual({ parentPid: 7, userTicks: 14, systemTicks: 26 });
});

test('the CPU and the memory of a running process can be read', () => {
  expect(treeCpuSeconds(process.pid).total).toBeGreaterThan(0);
  expect(residentBytes(process.pid)).toBeGreaterThan(1_000_000);
});
