import type { Key, Limits, Settings } from '../../shared/model.ts';
import { termsOnPlan } from '../terms-on-plan.ts';

/** A key that was issued while gateways run: its record in the directory. Instants are epoch ms. */
export interface DirectoryKey {
  readonly id: string;
  readonly plan: string;
  readonly name?: string;
  /** On a custom plan. */
  readonly limits?: Limits;
  /** Ids of the operations that it may call, of those of its plan; absent: all of these. */
  readonly operations?: readonly string[];
  readonly disabled: boolean;
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

/** As the request path uses it, on the plans in force; undefined when its plan is not among them, or is custom without limits. */
export function keyOf(record: DirectoryKey, plans: Settings['plans']): Key | undefined {
  const { id, plan, name, disabled } = record;
  const terms = termsOnPlan(plans.get(plan), record);
  return terms && { id, plan, ...(name !== undefined && { name }), ...terms, disabled };
}

export function expiryOf({ expiresMs = Number.POSITIVE_INFINITY }: DirectorySecret): number {
  return expiresMs;
}
