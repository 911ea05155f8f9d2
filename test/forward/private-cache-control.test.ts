import { expect, it } from 'vitest';
import { privateCacheControl } from '../../gateway/forward/private-cache-control.ts';

it.each([
  [undefined, 'private'],
  ['', 'private'],
  ['private', 'private'],
  ['Private, max-age=5', 'Private, max-age=5'],
  ['no-store', 'no-store'],
  ['max-age=5,\t private\t', 'max-age=5,\t private\t'],
  ['private\u00a0', 'private, private\u00a0'],
  ['no-cache', 'private, no-cache'],
  ['public, max-age=60', 'private, max-age=60'],
  [' public\t, , max-age=60', 'private, max-age=60'],
  ['s-maxage=60, Public, must-revalidate', 'private, must-revalidate'],
  ['private="x-field"', 'private, private="x-field"'],
])('an answer with Cache-Control %j is sent with %j', (sent, expected) => {
  expect(privateCacheControl(sent)).toBe(expected);
});
