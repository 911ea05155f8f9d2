import type { Key, KeyChange, Plans } from '../../shared/model.ts';
import { parseDate } from '../../shared/schema/dates-and-durations.ts';
import type { StatedKey } from '../key-schema.ts';
import { toLimits, withGroups } from '../limits/limit-fields.ts';

/** The plans with the limits that apply at `atMs`, epoch ms on the store's clock. */
export interface InForce {
  readonly plans: Plans;
  readonly atMs: number;
}

/** For the request path. @returns undefined when the plan does not exist, or when it is custom and the key states no limits */
export function compileKey(stated: StatedKey, { plans, atMs }: InForce): Key | undefined {
  const { id, name, groups, concurrent, operations: own, addresses, disabled } = stated;
  const { plan, limits: ownLimits } = termsAt(stated, atMs);
  const onPlan = plans.get(plan);
  const limits = onPlan?.isCustom ? ownLimits && toLimits(ownLimits) : onPlan?.limits;
  if (limits === undefined) return undefined;
  return {
    id,
    plan,
    name,
    limits: withGroups(limits, groups),
    changes: keyChanges(stated),
    trial: onPlan?.trial && withGroups(onPlan.trial, groups),
    ownGroups: groups && Object.keys(groups),
    concurrent: concurrent ?? onPlan?.concurrent,
    operations: scopeOf(onPlan?.operations, own),
    addresses,
    disabled,
  };
}

type Terms = Pick<StatedKey, 'plan' | 'limits' | 'changes'>;

/** The plans on which a key is at some time, each with its path in the key. */
export function* termsOverTime<Limits>({
  plan,
  limits,
  changes = [],
}: {
  readonly plan: string;
  readonly limits?: Limits | undefined;
  readonly changes?: readonly { readonly plan: string; readonly limits?: Limits | undefined }[] | undefined;
}): Generator<{
  readonly path: readonly (string | number)[];
  readonly plan: string;
  readonly limits?: Limits | undefined;
}> {
  yield { path: [], plan, limits };
  for (const [index, change] of changes.entries()) yield { ...change, path: ['changes', index] };
}

/** The earliest first; undefined without changes. */
export function keyChanges({ changes }: Pick<StatedKey, 'changes'>): readonly KeyChange[] | undefined {
  return changes?.map(({ from, plan, limits }) => ({
    fromMs: instantOf(from),
    plan,
    limits: limits && toLimits(limits),
  }));
}

/** The name of the plan on which a key is at a time. */
export function planNameAt(stated: Terms, atMs: number): string {
  return termsAt(stated, atMs).plan;
}

/** The same key with the plan that it has at `atMs` as its plan, and only with the changes after that. */
export function withPlanAt(stated: StatedKey, atMs: number): StatedKey {
  const { changes = [], ...members } = stated;
  const later = changes.filter(({ from }) => instantOf(from) > atMs);
  if (later.length === changes.length) return stated;
  const { plan, limits } = termsAt(stated, atMs);
  return { ...members, plan, limits, ...(later.length > 0 && { changes: later }) };
}

/** As stated: by the key itself, or by its last change up to `atMs`. */
function termsAt(stated: Terms, atMs: number): Pick<Terms, 'plan' | 'limits'> {
  return stated.changes?.findLast(({ from }) => instantOf(from) <= atMs) ?? stated;
}

/** The schema of a key accepts only dates. */
function instantOf(date: string): number {
  return parseDate(date) ?? Number.POSITIVE_INFINITY;
}

/** A key can restrict the operations of its plan, but cannot extend them. */
function scopeOf(
  ofPlan: readonly string[] | undefined,
  own: readonly string[] | undefined,
): readonly string[] | undefined {
  if (ofPlan === undefined || own === undefined) return ofPlan ?? own;
  return own.filter((id) => ofPlan.includes(id));
}
