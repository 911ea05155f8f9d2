import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { digestSecret, issueAdminToken, issueSecret } from '../../gateway/shared/secrets.ts';

test.each([
  ['a secret of a key', 'tg_', issueSecret],
  ['a token of the admin API', 'tga_', issueAdminToken],
])('%s is %s, 40 random characters and their checksum', (_what, prefix, issue) => {
  const secret = issue();
  expect(secret.slice(0, prefix.length)).toBe(prefix);
  const [, random = '', checksum = ''] =
    /^([0-9A-Za-z]{40})([0-9A-Za-z]{6})$/.exec(secret.slice(prefix.length)) ?? [];
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const decoded = [...checksum].reduce((sum, character) => sum * 62 + alphabet.indexOf(character), 0);
  expect(decoded).toBe(crc32(random));
});

test('bytes that would make some characters of a secret more likely are drawn again', () => {
  const draws = [new Uint8Array(40).fill(255), new Uint8Array(40).fill(248), new Uint8Array(40).fill(61)];
  const secret = issueSecret(() => draws.shift() ?? new Uint8Array(0));
  expect(secret.slice(3, 43)).toBe('z'.repeat(40));
});

test('many secrets are all different', () => {
  expect(new Set(Array.from({ length: 1_000 }, () => issueSecret())).size).toBe(1_000);
});

test('a digest is the hex SHA-256 of the whole secret', () => {
  expect(digestSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
