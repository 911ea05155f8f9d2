import type { KeyChange } from '../fleet/changes.ts';
import { eventTable, type Happening } from '../fleet/event-text.ts';
import type { DecisionSource, PlanWindow } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { policyName } from '../shared/words/limit-names.js';

/**
 * Something that receivers may want to know. Each process reports what it observes, so several processes may report the same thing. No
 * notice contains a secret or a complete digest.
 */
export type Notice = Happening | QuotaThreshold | SecretLeaked | KeyExpiring | OperationSunset | PlanChanged;

/** Whether a notice belongs into the list of events. Only receivers get the other notices. */
export function isHappening(notice: Notice): notice is Happening {
  return Object.hasOwn(eventTable, notice.kind);
}

/** The use of a key has reached a percentage of its limit. */
export interface QuotaThreshold {
  readonly kind: 'quota_threshold';
  readonly keyId: string;
  readonly plan: string | undefined;
  readonly window: Extract<PlanWindow, 'hour' | 'day' | 'month'>;
  /** The group of operations that the limit counts; absent if it counts all operations. */
  readonly group?: string | undefined;
  /** The number of the window since the epoch, which identifies the window. */
  readonly index: number;
  readonly percent: number;
  readonly used: number;
  /** The present limit, including a grant. */
  readonly limit: number;
  /** The time of the last reset of the key's counts, epoch ms; 0: never. After a reset, each percentage is reported again. */
  readonly resetMs: number;
  /** The end of the window, epoch ms. */
  readonly endsAtMs: number;
  readonly source: DecisionSource;
}

/** A secret of a key was found in a place that others can read. */
export interface SecretLeaked {
  readonly kind: 'secret_leaked';
  readonly keyId: string;
  readonly plan: string | undefined;
  /** The first 8 digits of the secret's digest. */
  readonly digestStart: string;
  /** The reporter of the leak: `github`, or the name of the token of the admin API. */
  readonly source: string;
  /** The place where the secret was found. */
  readonly url: string | undefined;
  /** The name of the secret's form at the reporter. */
  readonly type: string | undefined;
  /** Whether the gateway has ended the secret because of the report. */
  readonly ended: boolean;
  /** The first 8 digits of the digests of the secrets that ended too, because the holder of the key issued them from this secret. */
  readonly descendants: readonly string[];
  /** The time of the report, ISO 8601. */
  readonly reportedAt: string;
}

/** A key, or one of its secrets, expires soon. */
export interface KeyExpiring {
  readonly kind: 'key_expiring';
  readonly keyId: string;
  readonly plan: string | undefined;
  /** The first 8 digits of the digest of the expiring secret. */
  readonly digestStart: string;
  /** Whether the key has another secret that is valid for longer. */
  readonly hasOther: boolean;
  readonly expiresMs: number;
  /** The mark that was reached: this number of days before the expiry. */
  readonly days: number;
}

/** An operation is removed soon. */
export interface OperationSunset {
  readonly kind: 'operation_sunset';
  readonly operation: string;
  readonly method: string;
  /** The path template, with the path of the base URL. */
  readonly path: string;
  readonly sunsetMs: number;
  /** Whether requests get 410 after the sunset. */
  readonly afterSunset: 'gone' | 'serve';
  /** The mark that was reached: this number of days before the sunset. */
  readonly days: number;
  /** The path template of the operation's successor. */
  readonly successor: string | undefined;
  /** The keys that have called the operation recently. Undefined if the usage record is off, or could not be read. */
  readonly called: OperationCallers | undefined;
}

/** The keys that have called an operation recently. */
export interface OperationCallers {
  /** The number of days that the figures cover. */
  readonly days: number;
  /** The most frequent caller first. */
  readonly callers: readonly { readonly keyId: string; readonly requests: number }[];
  /** The number of callers that are not in the list. */
  readonly more: number;
}

/** A plan has other members than before: by a reload, or by a scheduled change. */
export interface PlanChanged {
  readonly kind: 'plan_changed';
  readonly plan: string;
  readonly cause: 'reload' | 'schedule';
  /** A text for each changed member: "60 → 50 a minute". */
  readonly edits: readonly string[];
  /** A text that is the same in all processes and different for another change of the plan. */
  readonly version: string;
}

/** Returns the notice of a recorded leak; undefined for any other change. */
export function leakNotice(
  { action, by, key: keyId, before, after, error }: KeyChange,
  plan: string | undefined,
): SecretLeaked | undefined {
  if (action !== 'leak' || keyId === undefined || error !== undefined) return undefined;
  const textOf = (member: unknown) => (typeof member === 'string' ? member : undefined);
  return {
    kind: 'secret_leaked',
    keyId,
    plan,
    digestStart: textOf(before?.secret) ?? '',
    source: by,
    url: textOf(after?.url),
    type: textOf(after?.type),
    ended: after?.ended === true,
    descendants: Array.isArray(after?.descendants) ? after.descendants : [],
    reportedAt: textOf(after?.reportedAt) ?? '',
  };
}

/** The identity by which the reports of several processes are merged into one event. */
export interface NoticeIdentity {
  readonly what: readonly (string | number)[];
  /** How long after the first report further reports are merged; 0: never. */
  readonly mergedWithinMs: number;
  /**
   * Whether a second report by the same process is the same event. If false, it is a new event, because a process reports each event once.
   * For example, a target may be down twice within a few seconds.
   */
  readonly isOnce: boolean;
}

/**
 * Returns the identity of a notice.
 *
 * @param nowMs the store's clock, epoch ms
 */
export function identityOf(notice: Notice, nowMs: number, bounds: Bounds): NoticeIdentity {
  const { eventsMergedWithinMs, changesMergedWithinMs } = bounds;
  const { kind } = notice;
  /** Processes may report the notice until `untilMs`, or some time later if Redis is away. */
  const once = (what: readonly (string | number)[], untilMs: number): NoticeIdentity => ({
    what: [kind, ...what],
    mergedWithinMs: Math.max(0, untilMs - nowMs) + bounds.noticesMergedAfterEndMs,
    isOnce: true,
  });
  const near = (what: readonly (string | number)[], mergedWithinMs: number): NoticeIdentity => ({
    what: [kind, ...what],
    mergedWithinMs,
    isOnce: false,
  });
  switch (kind) {
    case 'ban':
    case 'ban_ended':
      return once([notice.keyId, notice.untilMs], notice.untilMs);
    case 'quota_threshold': {
      const { keyId, window, group, index, percent, resetMs, endsAtMs } = notice;
      return once([keyId, policyName(window, group), index, percent, resetMs], endsAtMs);
    }
    case 'secret_leaked': {
      const { keyId, digestStart, reportedAt } = notice;
      return once([keyId, digestStart, reportedAt], nowMs);
    }
    case 'key_expiring': {
      const { keyId, digestStart, expiresMs, days } = notice;
      return once([keyId, digestStart, expiresMs, days], nowMs);
    }
    case 'operation_sunset': {
      const { operation, sunsetMs, days } = notice;
      return once([operation, sunsetMs, days], nowMs);
    }
    case 'plan_changed': {
      const { plan, version, cause } = notice;
      return cause === 'schedule'
        ? once([plan, version], nowMs)
        : near([plan, version], changesMergedWithinMs);
    }
    case 'plan_reverted': {
      const { plan, sinceMs } = notice;
      return once([plan, sinceMs], sinceMs);
    }
    case 'target_unhealthy':
    case 'target_healthy':
      return near([notice.upstream, notice.target], eventsMergedWithinMs);
    case 'store_away':
    case 'store_back':
      return near([notice.server ?? ''], eventsMergedWithinMs);
    case 'reload':
    case 'reload_failed':
      return near([notice.before, notice.after ?? ''], changesMergedWithinMs);
    case 'recording_paused':
    case 'recording_resumed':
      return near([], changesMergedWithinMs);
    // Only one process reports these notices.
    case 'key_changed':
    case 'certificate_expiring':
    case 'worker_ended':
    case 'plan_retried':
      return near([], 0);
  }
}
