import { once } from 'node:events';
import { pino } from 'pino';
import { createKeyDirectory, type KeyDirectory } from '../../gateway/directory/key-directory.ts';
import { openRecords } from '../../gateway/redis/redis-client.ts';
import { digestSecret } from '../../gateway/secrets.ts';
import { tunedBounds } from './tuned-bounds.ts';
import { patientStore } from './tuning.ts';

export interface DirectoryOfTest extends KeyDirectory {
  /** Creates a key with these secrets. */
  issue(id: string, secrets: readonly string[], more?: { plan?: string; disabled?: boolean }): Promise<void>;
  /** Changes the key as it is now. */
  edit(id: string, more: Partial<Parameters<KeyDirectory['replace']>[0]>): Promise<void>;
  close(): void;
}

/** The directory in a Redis, as one more process has it. */
export async function directoryOf(redis: { url: string; prefix: string }): Promise<DirectoryOfTest> {
  const bounds = tunedBounds({ ...patientStore, storePatientDeadlineMs: 20_000 });
  const records = openRecords(redis, bounds);
  if (records.client.status !== 'ready') await once(records.client, 'ready');
  const directory = createKeyDirectory({
    redis: records,
    nowMs: Date.now,
    storeNowMs: Date.now,
    log: pino({ level: 'silent' }),
    bounds,
  });
  return {
    ...directory,
    async issue(id, secrets, { plan = 'free', disabled = false } = {}) {
      const created = await directory.create({ id, plan, disabled, secrets: secrets.map(secretOf) });
      if (created.kind !== 'written') throw new Error(`${id} was not created: ${created.kind}`);
    },
    async edit(id, more) {
      const found = await directory.read(id);
      if (found.kind !== 'found') throw new Error(`${id} was not found: ${found.kind}`);
      const { revision, ...key } = found.key;
      const replaced = await directory.replace({ ...key, ...more }, revision);
      if (replaced.kind !== 'written') throw new Error(`${id} was not changed: ${replaced.kind}`);
    },
    close: () => records.client.disconnect(),
  };
}

export function secretOf(secret: string) {
  return { digest: digestSecret(secret), createdMs: Date.now() };
}
