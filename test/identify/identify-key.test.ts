import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createIdentifyKey } from '../../gateway/identify/identify-key.ts';
import type { Key, Secret } from '../../gateway/model.ts';
import { limitsOf } from '../support/limits-of.ts';

const nowMs = Date.UTC(2026, 10, 21);
const sha256 = (secret: string) => createHash('sha256').update(secret).digest('hex');

const acme: Key = {
  id: 'acme',
  plan: 'free',
  limits: limitsOf({ perMinute: 60, perDay: 1000 }),
  disabled: false,
};
const closed: Key = { ...acme, id: 'closed', disabled: true };

function ring(...entries: readonly [secret: string, key: Key, expiresMs?: number][]) {
  return {
    keys: new Map(entries.map(([, key]) => [key.id, key])),
    secrets: new Map<string, Secret>(
      entries.map(([secret, key, expiresMs = Number.POSITIVE_INFINITY]) => [
        sha256(secret),
        { keyId: key.id, expiresMs },
      ]),
    ),
  };
}

const known = ring(
  ['s3cret', acme],
  ['schlüssel', acme],
  ['old', acme, nowMs],
  ['soon', acme, nowMs + 1],
  ['shut', closed],
);

const identifyKey = createIdentifyKey(known, (key) => key);

describe('identifyKey', () => {
  it.each([
    'Bearer s3cret',
    'bearer s3cret',
    'BEARER   s3cret',
    'Bearer s3cret ',
    'Bearer \t s3cret\t ',
    'Bearer soon',
  ])('%j is the key', (authorization) => {
    expect(identifyKey(authorization, nowMs)).toEqual({ kind: 'identified', key: acme });
  });

  it('a secret beyond ASCII is the bytes that were sent', () => {
    const asNodeReadsIt = Buffer.from('Bearer schlüssel').toString('latin1');
    expect(identifyKey(asNodeReadsIt, nowMs)).toEqual({ kind: 'identified', key: acme });
  });

  it.each([undefined, '', 'Bearer', 'Bearer ', 'Basic s3cret', 'Bearers3cret', 's3cret'])(
    '%j presents no key',
    (authorization) => {
      expect(identifyKey(authorization, nowMs)).toEqual({ kind: 'refused', code: 'missing_key' });
    },
  );

  it.each([
    'Bearer wrong',
    'Bearer old',
    'Bearer shut',
    'Bearer S3CRET',
    `Bearer ${sha256('s3cret')}`,
    // Whitespace to JavaScript, to HTTP octets of the secret.
    'Bearer s3cret\u00a0',
    'Bearer \u00a0s3cret',
    'Bearer \u00a0',
  ])('%j is not valid, and the response does not say why', (authorization) => {
    expect(identifyKey(authorization, nowMs)).toEqual({ kind: 'refused', code: 'invalid_key' });
  });

  it('is as strict with what it remembers: a secret still expires', () => {
    expect(identifyKey('Bearer soon', nowMs)).toMatchObject({ kind: 'identified' });
    expect(identifyKey('Bearer soon', nowMs + 1)).toEqual({ kind: 'refused', code: 'invalid_key' });
  });
});
