import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { KeyChange } from '../../../gateway/fleet/changes.ts';
import { createKeyDirectory, type KeyDirectory } from '../../../gateway/keys/directory/key-directory.ts';
import { rotateOwnSecret } from '../../../gateway/request/path/rotate-secret.ts';
import { digestSecret, digestStart } from '../../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';

const createdMs = Date.UTC(2026, 10, 1);
const rotatedMs = Date.UTC(2026, 10, 24);
const lost = { kind: 'away', mayHaveRun: true, reason: 'no reply within the deadline' } as const;

/** A directory with a key, and a function that rotates the key's first secret. */
async function start(broken: (directory: KeyDirectory) => Partial<KeyDirectory> = () => ({})) {
  const directory = createKeyDirectory({
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
  const rotate = (nowMs = rotatedMs) =>
    rotateOwnSecret(
      { key: { id: 'acme', digestStart: digestStart(digest), generation: 0 } },
      { ...stations, nowMs: () => nowMs },
    );
  const digests = async () => {
    const found = await directory.read('acme');
    return found.kind === 'found' ? found.key.secrets.map((secret) => secret.digest) : [];
  };
  return { rotate, changes, digests };
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
