import { describe, expect, it } from 'vitest';
import { keySchema } from '../../../gateway/keys/key-schema.ts';
import {
  allowedRangeFault,
  compileRanges,
  hasAddress,
  networkOf,
} from '../../../gateway/shared/addresses/address-ranges.ts';

describe('a range of allowed addresses', () => {
  it.each([
    [
      '203.0.113.0/24',
      ['203.0.113.0', '203.0.113.255', '::ffff:203.0.113.7', '::ffff:cb00:7107'],
      ['203.0.114.0'],
    ],
    ['203.0.113.7', ['203.0.113.7'], ['203.0.113.6', '203.0.113.8', '::203.0.113.7']],
    ['0.0.0.0/0', ['203.0.113.7'], ['2001:db8::1', '']],
    ['2001:db8::/32', ['2001:db8::1', '2001:DB8:FFFF::'], ['2001:db9::', '203.0.113.7', 'no address']],
  ])('%s has %j and not %j', (range, inside, outside) => {
    expect(allowedRangeFault(range)).toBeUndefined();
    const ranges = compileRanges([range]);
    expect(inside.filter((address) => !hasAddress(ranges, address))).toEqual([]);
    expect(outside.filter((address) => hasAddress(ranges, address))).toEqual([]);
  });

  it.each<readonly [string, string]>([
    ['203.0.113.7/24', 'write 203.0.113.0/24 for the network, or 203.0.113.7 for the one address'],
    ['2001:db8::1/32', 'write 2001:db8::/32 for the network, or 2001:db8::1 for the one address'],
    ['::ffff:203.0.113.0/120', 'write 203.0.113.0/24'],
    ['::/0', 'would also allow every IPv4 address; write 2000::/3'],
    ...['203.0.113.0/33', '203.0.113', '010.0.0.1', 'fe80::1%eth0', '', ' 203.0.113.7', 'example.com'].map(
      (text) => [text, 'must be an address or range such as'] as const,
    ),
  ])('%j is refused with advice: %s', (range, advice) => {
    expect(allowedRangeFault(range)).toContain(advice);
  });

  it.each([
    [[], 'at least one address or range'],
    [Array.from({ length: 101 }, (_, index) => `10.0.0.${index}`), 'at most 100'],
    [['2001:db8::/32', '2001:DB8:0::/32'], 'repeats the entry `2001:db8::/32`'],
    [['203.0.113.7', '203.0.113.7/32'], 'repeats the entry `203.0.113.7`'],
  ])('the list %j is refused: %s', (addresses, advice) => {
    const { error } = keySchema.safeParse({ id: 'acme', plan: 'free', addresses, secrets: [] });
    expect(error?.issues.map(({ message }) => message)).toEqual([expect.stringContaining(advice)]);
  });

  it('is shown in records as a network, in which no single address can be read', () => {
    expect(['203.0.113.7', '::ffff:203.0.113.7', '2001:db8:1:2::3', 'fe80::1%eth0'].map(networkOf)).toEqual([
      '203.0.113.0/24',
      '203.0.113.0/24',
      '2001:db8:1::/48',
      'fe80::/48',
    ]);
  });
});
