import { randomUUID } from 'node:crypto';
import type { Guard } from '../../../../gateway/capabilities/guard/guard.ts';
import { type GuardedEdit, guardedEditOf } from '../../../../gateway/capabilities/guard/guarded-edit.ts';
import {
  type GuardCounts,
  RequestCounts,
} from '../../../../gateway/capabilities/guard/process/guard-counts.ts';
import type { Decision } from '../../../../gateway/shared/model.ts';
import type { Bounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';
import { limitsOf } from '../../../support/limits-of.ts';

/** Decided requests of a plan: the admitted ones as a number for further keys or by key, and the number of refusals of each key. */
export interface Requests {
  readonly admitted?: number | readonly string[];
  readonly refused?: Readonly<Record<string, number>>;
}

/** Returns an edit of a new plan from 60 to 40 a minute. The limit of 1,000 a day does not change. */
export function guardedEdit(members: Partial<Guard> = {}): GuardedEdit {
  const before = limitsOf({ perMinute: 60, perDay: 1_000 });
  const edit = guardedEditOf(
    {
      name: `plan-${randomUUID()}`,
      isCustom: false,
      limits: [],
      operations: undefined,
      guard: { before, refusedShareMax: 0.03, untilMs: Date.now() + 86_400_000, ...members },
    },
    limitsOf({ perMinute: 40, perDay: 1_000 }),
  );
  if (edit === undefined) throw new Error('the limit per minute is smaller than before');
  return edit;
}

/** A decision of a key with a limit per minute, which the edit made smaller, and a limit per day. */
export function decisionOf(
  kind: Decision['kind'],
  {
    limit = 40,
    remaining = 0,
    dayLimit = 1_000,
    dayRemaining = 9,
    units = 1,
    nowMs = Date.now(),
  }: DecisionOptions = {},
): Decision {
  const minute = { name: 'minute', limit, remaining, resetMs: nowMs + 1, windowSeconds: 60 } as const;
  const day = {
    name: 'day',
    limit: dayLimit,
    remaining: dayRemaining,
    resetMs: nowMs + 1,
    windowSeconds: 86_400,
  } as const;
  const rateLimit = { nowMs, windows: [minute, day], inForce: dayRemaining > remaining ? minute : day };
  const source = 'shared';
  if (kind === 'admitted') return { kind, units, rateLimit, source };
  return { kind, units, rateLimit, source, retryAtMs: nowMs + 1 };
}

interface DecisionOptions {
  readonly limit?: number;
  readonly remaining?: number;
  readonly dayLimit?: number;
  readonly dayRemaining?: number;
  readonly units?: number;
  readonly nowMs?: number;
}

export function countsOf(
  edit: GuardedEdit,
  { admitted = 0, refused = {} }: Requests,
  bounds: Bounds,
): GuardCounts {
  const counts = new RequestCounts();
  const count = (keyId: string, kind: Decision['kind']) =>
    counts.count(edit, { keyId, decision: decisionOf(kind), units: 1 }, bounds.guardKeysPerSlotMax);
  const keys =
    typeof admitted === 'number'
      ? Array.from({ length: admitted }, (_, index) => `other-${index}`)
      : admitted;
  for (const key of keys) count(key, 'admitted');
  for (const [key, refusals] of Object.entries(refused)) {
    for (let i = 0; i < refusals; i++) count(key, 'refused');
  }
  return counts.byName();
}
