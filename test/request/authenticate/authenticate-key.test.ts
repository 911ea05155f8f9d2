import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { tableOf } from '../../../gateway/keys/key-table.ts';
import { compilePlans } from '../../../gateway/keys/plans/plans.ts';
import { createAuthenticateKey } from '../../../gateway/request/authenticate/authenticate-key.ts';
import type { Key, ReadSecret } from '../../../gateway/shared/model.ts';
import { isInventedSecret, issueAdminToken, issueSecret } from '../../../gateway/shared/secrets.ts';
import { inventedSecret } from '../../support/invented-secret.ts';
import { limitsOf } from '../../support/limits-of.ts';

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
  const secretsById = Map.groupBy(entries, ([, { id }]) => id);
  const stated = [...secretsById].map(([id, ofKey]) => ({
    id,
    plan: 'free',
    disabled: ofKey[0]?.[1].disabled ?? false,
    secrets: ofKey.map(([secret, , expires]) => ({ sha256: sha256(secret), ...(expires && { expires }) })),
  }));
  const plans = compilePlans({ free: { custom: false, perMinute: 60, perDay: 1000 } });
  return tableOf(stated, { plans, atMs: nowMs });
}

const known = ring(
  ['s3cret', acme],
  ['schlüssel', acme],
  ['old', acme, nowMs],
  ['soon', acme, nowMs + 1],
  ['shut', closed],
  ['shut and old', closed, nowMs],
);

const digestOfOctets = (secret: string) => createHash('sha256').update(secret, 'latin1').digest('hex');
const swapCase = (letter: string) =>
  letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
const start = (secret: string) => sha256(secret).slice(0, 8);
const address = '192.0.2.1';
const nothingBlocked = { has: () => false, revision: () => 0 };
const authenticateBy = createAuthenticateKey(
  known,
  (key, { digestStart }) => ({ ...key, digestStart }),
  undefined,
  nothingBlocked,
);
const authenticateKey = (authorization: string | undefined, atMs: number) =>
  authenticateBy({ authorization, address }, atMs);

describe('authenticateKey', () => {
  it.each([
    ['Bearer s3cret', 's3cret'],
    ['bearer s3cret', 's3cret'],
    ['BEARER   s3cret', 's3cret'],
    ['Bearer s3cret ', 's3cret'],
    ['Bearer \t s3cret\t ', 's3cret'],
    ['Bearer soon', 'soon'],
  ])('%j is the key, by its secret %s', (authorization, secret) => {
    const key = { ...acme, digestStart: start(secret) };
    expect(authenticateKey(authorization, nowMs)).toEqual({ kind: 'authenticated', key });
  });

  it('a secret beyond ASCII is compared by its raw bytes', () => {
    const asNodeReadsIt = Buffer.from('Bearer schlüssel').toString('latin1');
    const key = { ...acme, digestStart: start('schlüssel') };
    expect(authenticateKey(asNodeReadsIt, nowMs)).toEqual({ kind: 'authenticated', key });
  });

  it.each([undefined, '', 'Bearer', 'Bearer ', 'Basic s3cret', 'Bearers3cret', 's3cret'])(
    '%j presents no key',
    (authorization) => {
      expect(authenticateKey(authorization, nowMs)).toEqual({ kind: 'refused', code: 'missing_key' });
    },
  );

  it.each([
    'wrong',
    'S3CRET',
    sha256('s3cret'),
    // The character is whitespace in JavaScript, but part of the secret in HTTP.
    's3cret\u00a0',
    '\u00a0s3cret',
    '\u00a0',
  ])('%j is unknown', (secret) => {
    const digestStart = createHash('sha256').update(secret, 'latin1').digest('hex').slice(0, 8);
    const presented = { status: 'unknown', digestStart };
    expect(authenticateKey(`Bearer ${secret}`, nowMs)).toEqual({
      kind: 'refused',
      code: 'invalid_key',
      presented,
    });
  });

  it.each([
    ['old', 'expired', 'acme'],
    ['shut', 'disabled', 'closed'],
    ['shut and old', 'disabled', 'closed'],
  ])(
    'the secret %j always gets the code of an unknown secret, and the log has the reason: %s',
    (secret, status, keyId) => {
      const presented = { status, keyId, digestStart: start(secret) };
      for (let time = 0; time < 2; time += 1) {
        expect(authenticateKey(`Bearer ${secret}`, nowMs)).toEqual({
          kind: 'refused',
          code: 'invalid_key',
          presented,
        });
      }
    },
  );

  it('a secret that was found earlier still expires', () => {
    expect(authenticateKey('Bearer soon', nowMs)).toMatchObject({ kind: 'authenticated' });
    expect(authenticateKey('Bearer soon', nowMs + 1)).toMatchObject({
      kind: 'refused',
      presented: { status: 'expired' },
    });
  });
});

describe('authenticateKey with a directory', () => {
  const forever = Number.POSITIVE_INFINITY;

  function open(read: ReadonlyMap<string, ReadSecret>, { table = known, isAllIssued = false } = {}) {
    const asked: string[] = [];
    const authenticate = createAuthenticateKey(
      table,
      (key, { digestStart }) => ({ ...key, digestStart }),
      {
        find(digest, atMs) {
          asked.push(digest);
          const secret = read.get(digest);
          return secret === undefined || atMs < secret.period.untilMs ? secret : undefined;
        },
        isAllIssued: () => isAllIssued,
        secretsMax: 2,
      },
      nothingBlocked,
    );
    return {
      asked,
      authenticate: (secret: string, atMs = nowMs, from = address) =>
        authenticate({ authorization: `Bearer ${secret}`, address: from }, atMs),
    };
  }

  function usable(
    id: string,
    period = { fromMs: nowMs, untilMs: nowMs + 10 },
    addresses?: readonly string[],
  ): ReadSecret {
    const key = { ...acme, id, addresses, generation: 1 };
    const refusalPeriod = { fromMs: nowMs, untilMs: nowMs + 2 };
    return { kind: 'usable', key, expiresMs: forever, period, refusalPeriod };
  }

  it('a key of the directory that does not allow an address is soon read again for this address', () => {
    const { authenticate } = open(new Map([[sha256('issued'), usable('issued', undefined, ['192.0.2.1'])]]));
    expect(authenticate('issued', nowMs + 9)).toMatchObject({ kind: 'authenticated' });
    const presented = { status: 'address_not_allowed', keyId: 'issued', digestStart: start('issued') };
    const refused = { kind: 'refused', code: 'address_not_allowed', presented };
    expect(authenticate('issued', nowMs + 1, '192.0.2.2')).toEqual(refused);
    expect(authenticate('issued', nowMs + 2, '192.0.2.2')).toEqual({
      kind: 'unread',
      digest: sha256('issued'),
    });
  });

  const issued = issueSecret();
  /** The same secret with another last character, so that its checksum is wrong. */
  const invented = inventedSecret(issued);
  const looked = (secret: string) => ({ kind: 'unread', digest: sha256(secret) });
  const refused = (secret: string) => {
    const presented = { status: 'unknown', digestStart: start(secret) };
    return { kind: 'refused', code: 'invalid_key', presented };
  };

  it.each([
    ['a wrong checksum', invented],
    ['a character of another case', issued.replace(/[A-Za-z](?=[0-9A-Za-z]{6,}$)/, swapCase)],
    ['a missing character', issued.slice(0, -1)],
    ['a further character', `${issued}0`],
    ['only the prefix', 'tg_'],
    ['a character beyond ASCII', `${issued.slice(0, -1)}\u00e4`],
    ['a space within', `${issued.slice(0, 20)} ${issued.slice(21)}`],
    ['the random part of a secret after another prefix', `tg_${issued}`],
  ])(
    'refuses a secret with %s without a look-up while all secrets of the directory are issued',
    (_, secret) => {
      expect(isInventedSecret(secret)).toBe(true);
      expect(open(new Map(), { isAllIssued: true }).authenticate(secret)).toEqual({
        ...refused(secret),
        presented: { status: 'unknown', digestStart: digestOfOctets(secret).slice(0, 8) },
      });
      expect(open(new Map()).authenticate(secret)).toEqual({
        kind: 'unread',
        digest: digestOfOctets(secret),
      });
    },
  );

  it.each([
    ['a right checksum', issued],
    ['an upper-case prefix', issued.replace('tg_', 'TG_')],
    ['the prefix of an admin token', issueAdminToken()],
    ['another prefix', 'sk_live_0123456789'],
    ['no prefix', '6f1b1a8c-2a37-4c0e-9d9a-4c8c1c7c0f2e'],
  ])(
    'looks up an unknown secret with %s, also while all secrets of the directory are issued',
    (_, secret) => {
      expect(open(new Map(), { isAllIssued: true }).authenticate(secret)).toEqual(looked(secret));
    },
  );

  it('accepts a known secret with a wrong checksum, from the configuration and from the cache', () => {
    const read = new Map([[sha256(invented), usable('imported')]]);
    const id = (caller: object) => ('key' in caller ? caller.key : caller);
    expect(id(open(read, { isAllIssued: true }).authenticate(invented))).toMatchObject({ id: 'imported' });
    const table = ring([invented, acme]);
    expect(id(open(new Map(), { table, isAllIssued: true }).authenticate(invented))).toMatchObject({
      id: 'acme',
    });
  });

  it('asks for the form of the secrets only when a secret is unknown and has a wrong checksum', () => {
    let asked = 0;
    const authenticate = createAuthenticateKey(
      known,
      (key) => key,
      {
        find: () => undefined,
        isAllIssued: () => asked++ >= 0,
        secretsMax: 2,
      },
      nothingBlocked,
    );
    for (const secret of ['s3cret', 'shut', 'sk_1', issued]) {
      authenticate({ authorization: `Bearer ${secret}`, address }, nowMs);
    }
    expect(asked).toBe(0);
    authenticate({ authorization: `Bearer ${invented}`, address }, nowMs);
    expect(asked).toBe(1);
  });

  it('looks up only secrets that the configuration does not have', () => {
    const { asked, authenticate } = open(new Map());
    expect(authenticate('s3cret')).toMatchObject({ kind: 'authenticated', key: { id: 'acme' } });
    expect(authenticate('shut')).toMatchObject({ presented: { status: 'disabled' } });
    expect(asked).toEqual([]);
    expect(authenticate('issued')).toEqual({ kind: 'unread', digest: sha256('issued') });
  });

  it('uses a cached key without a new look-up until its period ends', () => {
    const period = { fromMs: nowMs, untilMs: nowMs + 10 };
    const { asked, authenticate } = open(new Map([[sha256('issued'), usable('issued', period)]]));
    for (let request = 0; request < 3; request++) {
      expect(authenticate('issued', nowMs + 9)).toMatchObject({ key: { id: 'issued', generation: 1 } });
    }
    expect(asked).toHaveLength(1);
    period.untilMs = 0;
    expect(authenticate('issued', nowMs + 9)).toMatchObject({ kind: 'unread' });
  });

  it('lets a cached secret expire at its instant', () => {
    const secret: ReadSecret = { ...usable('issued'), expiresMs: nowMs + 5 } as ReadSecret;
    const { authenticate } = open(new Map([[sha256('issued'), secret]]));
    expect(authenticate('issued', nowMs + 4)).toMatchObject({ kind: 'authenticated' });
    expect(authenticate('issued', nowMs + 5)).toMatchObject({
      presented: { status: 'expired', keyId: 'issued' },
    });
  });

  it('caches a limited number of secrets, and still finds the others', () => {
    const ids = Array.from({ length: 100 }, (_, index) => `issued-${index}`);
    const { authenticate } = open(new Map(ids.map((id) => [sha256(id), usable(id)])));
    for (const id of [...ids, ...ids]) expect(authenticate(id)).toMatchObject({ key: { id } });
    expect(authenticate('s3cret')).toMatchObject({ key: { id: 'acme' } });
  });
});
