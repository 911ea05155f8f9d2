import { expect, test } from 'vitest';
import { createConnectionCounts } from '../../gateway/listen/connection-counts.ts';

test('the connections of one IPv6 subscriber count together, those of another apart', () => {
  const counts = createConnectionCounts({ max: 2 });
  expect(['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:0:1::1'].map(counts.add)).toEqual([
    true,
    true,
    false,
    true,
  ]);
});

test('an IPv4 address is one, however it is written', () => {
  const counts = createConnectionCounts({ max: 1 });
  expect(['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2'].map(counts.add)).toEqual([true, false, true]);
});

test('a closed connection makes room for one more of its subscriber', () => {
  const counts = createConnectionCounts({ max: 1 });
  counts.add('2001:db8::1');
  counts.remove('2001:db8::1');
  expect(['2001:db8::2', '2001:db8::3'].map(counts.add)).toEqual([true, false]);
});
