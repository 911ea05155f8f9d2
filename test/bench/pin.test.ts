import { expect, test } from 'vitest';
import { parseCpuList } from './pin.ts';

test("the kernel's list of CPUs is read: single ones, ranges and both", () => {
  expect(parseCpuList('3')).toEqual([3]);
  expect(parseCpuList('0-2')).toEqual([0, 1, 2]);
  expect(parseCpuList('0-1,8,10-11')).toEqual([0, 1, 8, 10, 11]);
});
