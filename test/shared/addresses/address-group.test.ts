import { expect, test } from 'vitest';
import { addressGroup, plainAddress } from '../../../gateway/shared/addresses/address-group.ts';

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::ffff:c000:207', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::1', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['::1', '::/64'],
  ['not an address', 'not an address'],
])('the address %s counts as %s', (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8::1', '2001:db8::1'],
  ['::ffff:1', '::ffff:1'],
  ['', ''],
])('the address %s reads %s', (address, plain) => {
  expect(plainAddress(address)).toBe(plain);
});
