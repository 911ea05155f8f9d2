import type { LimitsByField } from '../../keys/limits/limit-fields.ts';
import type { Author } from '../../shared/model.ts';

/** A change of the limits of a plan that a capability has made, in the record of changes. `by` may be the name of the capability. */
export interface LimitsChange extends Author {
  readonly action: string;
  readonly plan: string;
  /** The limits of the plan before and after the change. */
  readonly before: LimitsByField;
  readonly after: LimitsByField;
  /** The limits before the change, in the form of a reload. */
  readonly limitsBefore: { readonly plans: Readonly<Record<string, LimitsByField>> };
  /** The requests that led to the change. `sinceAt` is the time of the change, ISO 8601. */
  readonly figures?:
    | { readonly requests: number; readonly refused: number; readonly sinceAt: string }
    | undefined;
}

export interface LimitsChangeKind {
  /** The change in one sentence. */
  text(change: LimitsChange): string;
  /** The identity by which the changes of several processes are merged; absent if only one process makes the change. */
  identity?(change: LimitsChange): readonly unknown[];
  /** Parts of the API document: a sentence about the action, and who makes the change. */
  readonly words?: { readonly action: string; readonly by: string };
}

/** A change of keys that a capability makes, in the record of changes. Receivers of webhooks do not get it. */
export interface KeyChangeKind {
  /** The change in one sentence. @param nowMs epoch ms */
  text(change: ChangeOfKeys, nowMs: number): string;
}

interface ChangeOfKeys {
  readonly by: string;
  /** Absent for a change of many keys. */
  readonly key?: string | undefined;
  readonly before?: Readonly<Record<string, unknown>> | undefined;
  readonly after?: Readonly<Record<string, unknown>> | undefined;
}
