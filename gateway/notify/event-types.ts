import type { KeyChange } from '../fleet/changes.ts';
import type { Receiver, WebhookEventType } from '../shared/model.ts';
import type { Notice } from './notices.ts';

/** The type of the event that a notice causes; undefined if receivers get no event. */
export function eventTypeOf(notice: Notice): WebhookEventType | undefined {
  switch (notice.kind) {
    case 'ban':
      return 'key.banned';
    case 'ban_ended':
      return 'key.unbanned';
    case 'key_changed':
      return typeOfChange(notice);
    case 'store_away':
      return 'store.away';
    case 'store_back':
      return 'store.back';
    case 'target_unhealthy':
      return 'target.down';
    case 'target_healthy':
      return 'target.up';
    case 'recording_paused':
      return 'usage.paused';
    case 'reload':
      return 'config.reloaded';
    case 'reload_failed':
      return 'config.rejected';
    case 'quota_threshold':
      return 'quota.threshold';
    case 'secret_leaked':
      return 'secret.leaked';
    case 'key_expiring':
      return 'key.expiring';
    case 'operation_sunset':
      return 'operation.sunset';
    case 'plan_changed':
      return 'plan.changed';
    case 'plan_reverted':
      return 'plan.reverted';
    case 'recording_resumed':
    case 'certificate_expiring':
    case 'worker_ended':
    case 'plan_retried':
      return undefined;
  }
}

/**
 * An import is one event, because an import may have a million keys. A key ends when it is revoked or deleted. A new or removed secret is
 * also `key.rotated`, because an operator can rotate a secret in these two steps.
 */
function typeOfChange({ action, after }: KeyChange): WebhookEventType | undefined {
  switch (action) {
    case 'create':
      return 'key.created';
    case 'import':
      return after?.created === 0 ? undefined : 'key.created';
    case 'revoke':
    case 'delete':
      return 'key.revoked';
    case 'rotate':
    case 'secret':
      return 'key.rotated';
    // A lifted ban and a leak have their own notices.
    case 'unban':
    case 'leak':
    case 'restore':
    case 'update':
    case 'grant':
    case 'ungrant':
    case 'makegood':
      return undefined;
  }
}

/**
 * Whether a receiver gets the event of a notice. An event matches each filter of the receiver, and an event without a key, plan or operation
 * matches no filter by it.
 *
 * @param planOfKey the plan of the notice's key at the time of the event, if the notice does not state it
 */
export function isWantedBy(
  { events, at, keys, plans, operations }: Omit<Receiver, 'id' | 'url' | 'secrets'>,
  notice: Notice,
  planOfKey?: string,
): boolean {
  const type = eventTypeOf(notice);
  if (type === undefined || !events.includes(type)) return false;
  if (notice.kind === 'quota_threshold' && !at.includes(notice.percent)) return false;
  const { key, plan = planOfKey, operation } = aboutOf(notice);
  const matches = (filter: readonly string[] | undefined, id: string | undefined) =>
    filter === undefined || (id !== undefined && filter.includes(id));
  return matches(keys, key) && matches(plans, plan) && matches(operations, operation);
}

/** What a filter of receivers can select. */
export interface About {
  readonly key?: string | undefined;
  /** The plan of the key, or the plan that the event is about. Undefined if the notice does not state it. */
  readonly plan?: string | undefined;
  readonly operation?: string | undefined;
}

/** Returns the key, plan and operation that a notice states. */
export function aboutOf(notice: Notice): About {
  switch (notice.kind) {
    case 'ban':
    case 'ban_ended':
    case 'quota_threshold':
    case 'secret_leaked':
    case 'key_expiring':
      return { key: notice.keyId, plan: notice.plan };
    case 'key_changed': {
      const plan = notice.plan ?? notice.after?.plan ?? notice.before?.plan;
      return { key: notice.key, plan: typeof plan === 'string' ? plan : undefined };
    }
    case 'plan_changed':
    case 'plan_reverted':
    case 'plan_retried':
      return { plan: notice.plan };
    case 'operation_sunset':
      return { operation: notice.operation };
    default:
      return {};
  }
}

/** The filters that can match an event of a type. */
export function filtersOf(type: WebhookEventType): readonly ('keys' | 'plans' | 'operations')[] {
  switch (type) {
    case 'quota.threshold':
    case 'key.banned':
    case 'key.unbanned':
    case 'key.created':
    case 'key.revoked':
    case 'key.rotated':
    case 'key.expiring':
    case 'secret.leaked':
      return ['keys', 'plans'];
    case 'plan.changed':
    case 'plan.reverted':
      return ['plans'];
    case 'operation.sunset':
      return ['operations'];
    case 'target.down':
    case 'target.up':
    case 'store.away':
    case 'store.back':
    case 'config.rejected':
    case 'config.reloaded':
    case 'usage.paused':
      return [];
  }
}

/** The subject of an event, such as a key or a target. A receiver gets the events of one subject in their order. */
export function subjectOf(notice: Notice): string {
  switch (notice.kind) {
    case 'ban':
    case 'ban_ended':
    case 'quota_threshold':
    case 'secret_leaked':
    case 'key_expiring':
      return `key ${notice.keyId}`;
    case 'key_changed':
      return `key ${notice.key ?? ''}`;
    case 'target_unhealthy':
    case 'target_healthy':
      return `target ${notice.upstream} ${notice.target}`;
    case 'store_away':
    case 'store_back':
      return `store ${notice.server ?? ''}`;
    case 'operation_sunset':
      return `operation ${notice.operation}`;
    case 'plan_changed':
    case 'plan_reverted':
    case 'plan_retried':
      return `plan ${notice.plan}`;
    case 'reload':
    case 'reload_failed':
      return 'config';
    case 'recording_paused':
    case 'recording_resumed':
      return 'usage';
    case 'certificate_expiring':
    case 'worker_ended':
      return notice.kind;
  }
}
