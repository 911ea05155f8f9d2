import { pino } from 'pino';
import {
  createKeyDirectory,
  type KeyDefinition,
  type KeyDirectory,
} from '../../gateway/keys/directory/key-directory.ts';
import { digestSecret } from '../../gateway/shared/secrets.ts';
import { connectRedis, type RedisPlace } from './connect-redis.ts';
import { tunedBounds } from './tuned-bounds.ts';
import { patientStore } from './tuning.ts';

export interface DirectoryOfTest extends KeyDirectory {
  /** Creates a key with these secrets. */
  issue(id: string, secrets: readonly string[], more?: Partial<KeyDefinition>): Promise<void>;
  /** Changes the current version of the key. */
  edit(id: string, more: Partial<KeyDefinition>): Promise<void>;
  /** Deletes the current version of the key. */
  discard(id: string): Promise<void>;
  close(): void;
}

/** Opens the key directory of a Redis, as a further process would. */
export async function directoryOf(redis: RedisPlace & { prefix: string }): Promise<DirectoryOfTest> {
  const bounds = tunedBounds(patientStore);
  const { prefix, ...place } = redis;
  const records = await connectRedis({ prefix, place, bounds });
  const directory = createKeyDirectory({
    redis: records,
    nowMs: Date.now,
    storeNowMs: Date.now,
    log: pino({ level: 'silent' }),
    bounds,
  });
  return {
    ...directory,
    async issue(id, secrets, more) {
      const key = { id, plan: 'free', disabled: false, secrets: secrets.map(secretOf) };
      const created = await directory.create({ ...key, ...more });
      if (created.kind !== 'written') throw new Error(`${id} was not created: ${created.kind}`);
    },
    async edit(id, more) {
      const found = await directory.read(id);
      if (found.kind !== 'found') throw new Error(`${id} was not found: ${found.kind}`);
      const { revision: _, ...key } = found.key;
      const replaced = await directory.replace({ ...key, ...more }, found.key);
      if (replaced.kind !== 'written') throw new Error(`${id} was not changed: ${replaced.kind}`);
    },
    async discard(id) {
      const found = await directory.read(id);
      if (found.kind !== 'found') throw new Error(`${id} was not found: ${found.kind}`);
      const removed = await directory.remove(id, found.key);
      if (removed.kind !== 'removed') throw new Error(`${id} was not removed: ${removed.kind}`);
    },
    close: records.close,
  };
}

export function secretOf(secret: string) {
  return { digest: digestSecret(secret), createdMs: Date.now() };
}
