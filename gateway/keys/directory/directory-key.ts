import type { StatedKey } from '../key-schema.ts';
import { toLimitFields } from '../limit-fields.ts';

/** A key that was issued while gateways run: its record in the directory. It has what was stated, and beside that: */
export interface DirectoryKey extends StatedKey {
  /** Instants are epoch ms. */
  readonly createdMs: number;
  readonly changedMs: number;
  /** 1 when it was created, and one more with each change. */
  readonly revision: number;
  readonly secrets: readonly DirectorySecret[];
}

/**
 * Which state of a key somebody has seen. The revision alone would not say: a key that is removed and issued again under the same id
 * begins with 1 once more.
 */
export type KeyVersion = Pick<DirectoryKey, 'revision' | 'changedMs'>;

export interface DirectorySecret {
  /** Lower-case hex SHA-256 digest. */
  readonly digest: string;
  readonly createdMs: number;
  /** It is valid before this instant; absent: it never expires. */
  readonly expiresMs?: number;
}

/** What an operator stated of a key of the directory. */
export function statedOf({
  createdMs: _,
  changedMs: __,
  revision: ___,
  secrets: ____,
  ...stated
}: StatedKey & Partial<DirectoryKey>): StatedKey {
  return stated;
}

/** Undefined for a value that is no record. Records of earlier versions have their limits as a list. */
export function fromRecord(
  id: string,
  revision: number,
  record: Record<string, unknown>,
): DirectoryKey | undefined {
  const limits = Array.isArray(record.limits) ? { limits: toLimitFields(record.limits) } : {};
  const key = Object.assign({ id }, record, { id, revision }, limits) as unknown as DirectoryKey;
  return typeof key.plan === 'string' && Array.isArray(key.secrets) ? key : undefined;
}

export function expiryOf({ expiresMs = Number.POSITIVE_INFINITY }: DirectorySecret): number {
  return expiresMs;
}
