import type { Leak } from '../../shared/model.ts';
import type { StatedKey } from '../key-schema.ts';
import { toLimitFields } from '../limits/limit-fields.ts';

export interface DirectoryKey extends StatedKey {
  /** Times are epoch ms. */
  readonly createdMs: number;
  readonly changedMs: number;
  /** 1 for a new key. Each change adds one. */
  readonly revision: number;
  readonly secrets: readonly DirectorySecret[];
  /** Removed secrets from which a secret of the key descends. A report of such a secret still finds the key. */
  readonly pastSecrets?: readonly PastSecret[] | undefined;
}

/**
 * The revision alone does not identify a version, because a key that is removed and issued again under the same id starts at revision 1
 * again.
 */
export type KeyVersion = Pick<DirectoryKey, 'revision' | 'changedMs'>;

export interface DirectorySecret {
  /** Lower-case hex SHA-256. */
  readonly digest: string;
  readonly createdMs: number;
  /** Absent: never. */
  readonly expiresMs?: number | undefined;
  /** A leaked secret that has ended is refused, whatever its expiry is. */
  readonly leak?: Leak | undefined;
  /** The digest of the secret with which the holder issued this one; absent for a secret of an operator. */
  readonly issuedFrom?: string | undefined;
  /** The hex SHA-256 of the `Idempotency-Key` with which the holder issued this secret. */
  readonly requestDigest?: string | undefined;
}

export type PastSecret = Pick<DirectorySecret, 'digest' | 'issuedFrom' | 'leak'>;

/** Without secrets, revision and timestamps. */
export function statedOf({
  createdMs: _,
  changedMs: __,
  revision: ___,
  secrets: ____,
  pastSecrets: _____,
  ...stated
}: StatedKey & Partial<Record<Exclude<keyof DirectoryKey, keyof StatedKey>, unknown>>): StatedKey {
  return stated;
}

/** @returns undefined for a value that is not a record. Earlier versions stored limits as a list */
export function fromRecord(
  id: string,
  revision: number,
  record: Record<string, unknown>,
): DirectoryKey | undefined {
  const limits = Array.isArray(record.limits) ? { limits: toLimitFields(record.limits) } : {};
  const key = Object.assign({ id }, record, { id, revision }, limits) as unknown as DirectoryKey;
  return typeof key.plan === 'string' && Array.isArray(key.secrets) ? key : undefined;
}

/** Includes removed secrets that have descendants. */
export function digestsOf({
  secrets,
  pastSecrets = [],
}: Pick<DirectoryKey, 'secrets' | 'pastSecrets'>): string[] {
  return [...secrets, ...pastSecrets].map(({ digest }) => digest);
}

export function expiryOf({
  expiresMs = Number.POSITIVE_INFINITY,
}: Pick<DirectorySecret, 'expiresMs'>): number {
  return expiresMs;
}
