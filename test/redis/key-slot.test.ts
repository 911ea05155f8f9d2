import { expect, it } from 'vitest';
import { keySlot } from '../../gateway/redis/key-slot.ts';

it.each([
  // The check value of the specification of Redis Cluster, 0x31C3.
  ['123456789', 0x31c3],
  ['', 0],
  ['foo', 12_182],
  ['{foo}bar', 12_182],
  ['tollgate:{foo}:usage:20779', 12_182],
  ['foo{}{bar}', 8_363],
  ['foo{{bar}}zap', 4_015],
])('the slot of %j is %i', (key, slot) => {
  expect(keySlot(key)).toBe(slot);
});
