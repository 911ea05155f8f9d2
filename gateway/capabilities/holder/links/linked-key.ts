import { expiryOf } from '../../../keys/directory/directory-key.ts';
import type { KeyDirectory } from '../../../keys/directory/key-directory.ts';
import { inForceForDirectory } from '../../../keys/key-table.ts';
import type { BlockedSecrets } from '../../../keys/leaks/blocked/blocked-secrets.ts';
import { compileKey } from '../../../keys/plans/compile-key.ts';
import type { Away } from '../../../redis/redis-reply.ts';
import { type Key, keyIdPattern, type Settings } from '../../../shared/model.ts';
import type { Link } from './link-store.ts';

export interface KeySources {
  readonly settings: Pick<Settings, 'keys'>;
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory: Pick<KeyDirectory, 'read'> | undefined;
  readonly blocked: Pick<BlockedSecrets, 'has'>;
  /** Epoch ms. */
  readonly nowMs: number;
}

/** A key whose page a link may open. */
export interface LinkedKey {
  readonly kind: 'found';
  /** Undefined if the plan of the key is not in the configuration. */
  readonly key: Key | undefined;
  /** Whether the key has a secret that opens the page. */
  readonly isUsable: boolean;
  /**
   * Texts that distinguish the key from a later key with the same id, which may belong to another customer. A key of the directory has one
   * mark, the time of its creation. A key of a file has a mark for each secret, the first digits of the digest. The commands remove no secret
   * from a file.
   */
  readonly marks: readonly string[];
}

/** Finds a key by its id, in the configuration or in the key directory. Reads the directory, and not its cache. Never rejects. */
export async function findLinkedKey(
  id: string,
  { settings, directory, blocked, nowMs }: KeySources,
): Promise<LinkedKey | { readonly kind: 'absent' } | Away> {
  const key = settings.keys.get(id);
  if (key !== undefined) {
    const secrets = settings.keys.secretsOf(id);
    const isValid = secrets.some(({ digest, expiresMs }) => expiresMs > nowMs && !blocked.has(digest));
    const marks = secrets.map(({ digest }) => `secret ${digest.slice(0, markDigits)}`);
    return { kind: 'found', key, isUsable: isValid && !key.disabled, marks };
  }
  // The check of the id keeps invalid ids out of Redis keys.
  if (settings.keys.has(id) || directory === undefined || !keyIdPattern.test(id)) return { kind: 'absent' };
  const found = await directory.read(id);
  if (found.kind !== 'found') return found;
  const { key: record, generation } = found;
  const compiled = compileKey(record, inForceForDirectory(settings, nowMs));
  const isValid = record.secrets.some((secret) => expiryOf(secret) > nowMs && !secret.leak?.ended);
  return {
    kind: 'found',
    key: compiled && { ...compiled, generation },
    isUsable: isValid && !record.disabled,
    marks: [`created ${record.createdMs}`],
  };
}

/** With 64 bits, two secrets have different marks. */
const markDigits = 16;

/** Whether the link has not ended, and was made for this key, and not for an earlier key with the same id. */
export function isOpen({ endMs, marks }: Link, { marks: present }: LinkedKey, nowMs: number): boolean {
  return endMs > nowMs && marks.some((mark) => present.includes(mark));
}
