import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { rotateOwnSecret } from '../../../gateway/capabilities/holder/rotate-secret.ts';
import type { HolderData } from '../../../gateway/capabilities/holder/usage/own-usage.ts';
import type { KeyChange } from '../../../gateway/fleet/changes.ts';
import { withNewSecret, withSecrets } from '../../../gateway/keys/directory/change-secrets.ts';
import type { DirectoryKey } from '../../../gateway/keys/directory/directory-key.ts';
import {
  createKeyDirectory,
  type KeyDefinition,
  type KeyDirectory,
} from '../../../gateway/keys/directory/key-directory.ts';
import { endLine } from '../../../gateway/keys/leaks/end-line.ts';
import { digestSecret, digestStart } from '../../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { connectRedis, removeAll } from '../../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';

const createdMs = Date.UTC(2026, 10, 1);
const rotatedMs = Date.UTC(2026, 10, 24);
const lost = { kind: 'away', mayHaveRun: true, reason: 'no reply within the deadline' } as const;

/** A directory with a key, and a function that rotates the key's first secret. */
async function start(broken: (directory: KeyDirectory) => Partial<KeyDirectory> = () => ({})) {
  const redis = await connectRedis({ prefix: freshPrefix(), place: { url: redisUrl() } });
  onTestFinished(() => removeAll(redis));
  const directory = createKeyDirectory({
    redis,
    nowMs: () => rotatedMs,
    storeNowMs: () => rotatedMs,
    log: pino({ level: 'silent' }),
    bounds: defaultBounds,
  });
  const digest = digestSecret('presented');
  await directory.create({ id: 'acme', plan: 'free', disabled: false, secrets: [{ digest, createdMs }] });
  const changes: KeyChange[] = [];
  const stations = {
    directory: { ...directory, ...broken(directory) },
    recordKeyChange: (change: KeyChange) => void changes.push(change),
    bounds: defaultBounds,
  };
  const rotate = (nowMs = rotatedMs, { headers = {}, presented = 'presented' } = {}) =>
    rotateOwnSecret(
      {
        key: { id: 'acme', digestStart: digestStart(digestSecret(presented)), generation: 0 },
        req: { headers },
      },
      { ...stations, nowMs: () => nowMs },
    );
  const digests = async () => {
    const found = await directory.read('acme');
    return found.kind === 'found' ? found.key.secrets.map((secret) => secret.digest) : [];
  };
  const edit = async (change: (key: DirectoryKey) => KeyDefinition | undefined) => {
    const found = await directory.read('acme');
    const to = found.kind === 'found' ? change(found.key) : undefined;
    if (found.kind !== 'found' || to === undefined) throw new Error('the key cannot be changed');
    await directory.replace(to, found.key);
  };
  return { rotate, changes, digests, edit };
}

it('a secret is rotated only once, also by a second process whose clock is slow', async () => {
  const { rotate, digests } = await start();
  expect(await rotate()).toMatchObject({ kind: 'json', value: { oldEndsAt: '2026-11-25T00:00:00.000Z' } });
  for (const skewMs of [-90_000, -1, 0, 1]) {
    expect(await rotate(rotatedMs + skewMs)).toMatchObject({ refusal: { code: 'operation_not_allowed' } });
  }
  expect(await digests()).toHaveLength(2);
});

it('a rotation whose reply was lost gives the new secret to its holder', async () => {
  let replies = 0;
  const { rotate, changes, digests } = await start((directory) => ({
    async replace(...change) {
      const reply = await directory.replace(...change);
      replies += 1;
      return replies === 1 ? lost : reply;
    },
  }));
  const rotated = await rotate();
  if (rotated.kind !== 'json') throw new Error(rotated.refusal.message);
  const { secret } = rotated.value as { secret: string };
  expect(await digests()).toEqual([digestSecret('presented'), digestSecret(secret)]);
  expect(rotated.value).toMatchObject({ oldEndsAt: '2026-11-25T00:00:00.000Z' });
  expect(changes).toEqual([expect.objectContaining({ action: 'rotate', by: 'holder', key: 'acme' })]);
  expect(changes[0]).not.toHaveProperty('error');
});

it('a rotation that the store does not confirm says so to its holder and in the record of changes', async () => {
  let isAway = false;
  const { rotate, changes } = await start((directory) => ({
    async replace() {
      isAway = true;
      return lost;
    },
    read: async (id) => (isAway ? { ...lost, mayHaveRun: false } : directory.read(id)),
  }));
  expect(await rotate()).toMatchObject({
    refusal: { code: 'store_unavailable', message: expect.stringContaining('did not confirm') },
  });
  expect(changes).toMatchObject([{ action: 'rotate', by: 'holder', error: lost.reason }]);
});

it('a repeated request with its Idempotency-Key removes the lost secret and issues another one', async () => {
  const { rotate, changes, digests } = await start();
  const headers = { 'idempotency-key': 'a-key-of-one-request' };
  const first = secretIn(await rotate(rotatedMs, { headers }));
  const again = await rotate(rotatedMs + 3_600_000, { headers });
  expect(await digests()).toEqual([digestSecret('presented'), digestSecret(secretIn(again))]);
  expect(again).toMatchObject({ value: { oldEndsAt: '2026-11-25T00:00:00.000Z' } });
  expect(changes.at(-1)).toMatchObject({ after: { replaces: digestStart(digestSecret(first)) } });
  const others = [{}, { 'idempotency-key': 'a-key-of-another-one' }];
  for (const headers of others) {
    expect(await rotate(rotatedMs, { headers })).toMatchObject({
      refusal: { code: 'operation_not_allowed' },
    });
  }
  const short = { headers: { 'idempotency-key': 'short' } };
  expect(await rotate(rotatedMs, short)).toMatchObject({ refusal: { code: 'invalid_request' } });
});

it('a repeated request does not end a secret that was rotated since', async () => {
  const { rotate, digests } = await start();
  const headers = { 'idempotency-key': 'a-key-of-one-request' };
  const second = secretIn(await rotate(rotatedMs, { headers }));
  const third = secretIn(await rotate(rotatedMs + 1, { presented: second }));
  expect(await rotate(rotatedMs + 2, { headers })).toMatchObject({
    refusal: { code: 'operation_not_allowed' },
  });
  expect(await digests()).toEqual(['presented', second, third].map(digestSecret));
});

it('a rotation that begins before a report and is written after it issues no secret', async () => {
  let report = async () => {};
  const { rotate, edit, digests } = await start((directory) => ({
    async replace(...change) {
      await report();
      report = async () => {};
      return directory.replace(...change);
    },
  }));
  const leak = { atMs: rotatedMs, by: 'github', ended: true };
  report = () =>
    edit((key) => {
      const ended = endLine(key, digestSecret('presented'), leak);
      return withSecrets(ended, ended.secrets);
    });
  expect(await rotate()).toMatchObject({ refusal: { code: 'invalid_key' } });
  expect(await digests()).toHaveLength(1);
});

it('a line of secrets has a largest number of rotations, and then needs a secret of an operator', async () => {
  const { rotate, edit } = await start();
  const dayMs = 86_400_000;
  let presented = 'presented';
  let nowMs = rotatedMs;
  for (let rotations = 0; rotations < defaultBounds.ownRotationsMax; rotations++) {
    presented = secretIn(await rotate(nowMs, { presented }));
    nowMs += 2 * dayMs;
  }
  const refused = await rotate(nowMs, { presented });
  expect(refused).toMatchObject({
    refusal: { code: 'operation_not_allowed', message: expect.stringContaining('200 rotations') },
  });
  await edit((key) => withNewSecret(key, { digest: digestSecret('root'), createdMs: nowMs }, operator));
  expect(await rotate(nowMs, { presented: 'root' })).toMatchObject({ kind: 'json' });
});

const operator = { endOf: () => Number.POSITIVE_INFINITY, secretsMax: 16 };

function secretIn(data: HolderData): string {
  if (data.kind !== 'json') throw new Error(data.refusal.message);
  return (data.value as { secret: string }).secret;
}
