import type { BanEvent, BanPolicy, StoreEvent, TargetEvent } from '../shared/model.ts';
import { figure } from '../shared/words/figures.js';
import type { KeyChange } from './changes.ts';
import { type PlanRetried, type PlanReverted, retryText, revertText } from './guard/revert-text.ts';
import { keyChangeText } from './key-change-text.ts';
import { ordinal, timeText, whoOf } from './wording.ts';

/** An event of a key, Redis, a target, a certificate, the usage record, a worker, a plan or the configuration. */
export type Happening =
  // The text of a ban names the rule that caused the ban.
  | (Extract<BanEvent, { kind: 'ban' }> & { readonly policy: BanPolicy })
  | Extract<BanEvent, { kind: 'ban_ended' }>
  | StoreEvent
  | TargetEvent
  | ({ readonly kind: 'key_changed' } & KeyChange)
  | {
      readonly kind: 'certificate_expiring';
      readonly listener: string;
      /** The message of the log line. */
      readonly notice: string;
      readonly notAfterMs: number;
    }
  | { readonly kind: 'recording_paused'; readonly reason: string }
  | { readonly kind: 'recording_resumed' }
  | WorkerEvent
  | PlanReverted
  | PlanRetried
  | {
      readonly kind: 'reload';
      readonly before: string;
      readonly after: string;
      /** A text for each edit: "free 60 → 50 a minute". */
      readonly edits: readonly string[];
    }
  | {
      readonly kind: 'reload_failed';
      readonly before: string;
      readonly after: string | undefined;
      readonly error: string;
    };

/** A worker has exited, and another worker replaces it. */
export interface WorkerEvent {
  readonly kind: 'worker_ended';
  /** From 1. */
  readonly worker: number;
  readonly pid: number;
  /** The reason for the exit, for example `SIGKILL` or `exit code 1`. */
  readonly reason: string;
  /** The time until the new worker starts. */
  readonly pauseMs: number;
}

export type EventKind = Happening['kind'];

/** An entry of the list of events. All times are ISO 8601 in UTC. */
export interface GatewayEvent {
  readonly kind: EventKind;
  /** The whole event in one sentence. */
  readonly text: string;
  readonly key?: string | undefined;
  readonly plan?: string | undefined;
  readonly upstream?: string;
  readonly target?: string;
  /** The affected server of a Redis Cluster. */
  readonly server?: string | undefined;
  /** The beginning of an outage that has ended. */
  readonly beganAt?: string;
  /** The end of a ban, or of a certificate's validity. */
  readonly untilAt?: string;
  /** The number of unlisted events of this kind that this entry summarises. */
  readonly count?: number;
}

/** The groups by which a list can be filtered: faults, bans, and operators' changes. */
export const eventGroups = ['incident', 'ban', 'change'] as const;
export type EventGroup = (typeof eventGroups)[number];

/** The group of each kind of event, and the words for many events of this kind: "and 312 more keys were banned". */
export const eventTable: Readonly<Record<EventKind, readonly [group: EventGroup, words: string]>> = {
  ban: ['ban', 'keys were banned'],
  ban_ended: ['ban', 'bans ended'],
  store_away: ['incident', 'times Redis went away'],
  store_back: ['incident', 'times Redis came back'],
  target_unhealthy: ['incident', 'targets became unhealthy'],
  target_healthy: ['incident', 'targets became healthy again'],
  key_changed: ['change', 'changes of keys'],
  certificate_expiring: ['incident', 'certificates expire'],
  recording_paused: ['incident', 'times the recording of usage paused'],
  recording_resumed: ['incident', 'times the recording of usage resumed'],
  worker_ended: ['incident', 'workers ended'],
  plan_reverted: ['incident', 'plans were reverted by their guards'],
  plan_retried: ['change', 'plans tried their edits again'],
  reload: ['change', 'reloads'],
  reload_failed: ['change', 'failed reloads'],
};

/**
 * The event in one sentence. Times are UTC.
 *
 * @param begun the begin of the outage that this event ends
 */
export function eventText(happening: Happening, nowMs: number, begun?: Happening): string {
  switch (happening.kind) {
    case 'ban': {
      const { level, untilMs, policy } = happening;
      const lengthMs = Math.min(policy.forMs * 2 ** (level - 1), policy.maxMs);
      const nth = level > 1 ? `, for the ${ordinal(level)} time in a row` : '';
      const cause = `${figure(policy.after)} of its requests were refused within ${durationText(policy.withinMs)}`;
      return `${whoOf(happening)} is banned for ${durationText(lengthMs)}, until ${timeText(untilMs, nowMs)}${nth}: ${cause}.`;
    }
    case 'ban_ended':
      return happening.ended === 'lifted'
        ? `The ban of ${whoOf(happening)} was lifted.`
        : `The ban of ${whoOf(happening)} expired.`;
    case 'store_away': {
      const { reason, onFailure, server } = happening;
      const whose = server === undefined ? '' : ' of its keys';
      const effect =
        onFailure === 'local'
          ? `each process counts limits${whose} on its own`
          : `requests${whose} are answered 503`;
      return `${storeOf(happening)} is away (${reason}): ${effect}.`;
    }
    case 'store_back': {
      // Each process has made a different number of decisions without Redis, so the merged event omits this number.
      const reason = begun?.kind === 'store_away' ? ` (${begun.reason})` : '';
      return `${storeOf(happening)} is back. It was away for ${durationText(happening.awayMs)}${reason}.`;
    }
    case 'target_unhealthy': {
      const { upstream, target, health, reason } = happening;
      const effect =
        health === 'down'
          ? 'is down and gets no requests'
          : 'is silent and gets no requests while another target is healthy';
      return `Target ${target} of upstream ${upstream} ${effect}${reason === undefined ? '' : `: ${reason}`}.`;
    }
    case 'target_healthy': {
      const { upstream, target, unhealthyMs } = happening;
      const reason =
        begun?.kind === 'target_unhealthy' && begun.reason !== undefined ? `: ${begun.reason}` : '';
      return `Target ${target} of upstream ${upstream} is healthy again after ${durationText(unhealthyMs)}${reason}.`;
    }
    case 'key_changed':
      return keyChangeText(happening, nowMs);
    case 'certificate_expiring':
      return `${happening.notice.charAt(0).toUpperCase()}${happening.notice.slice(1)}.`;
    case 'recording_paused':
      return `The usage record pauses: ${happening.reason}.`;
    case 'recording_resumed':
      return begun?.kind === 'recording_paused'
        ? `The usage record resumes. It had paused: ${begun.reason}.`
        : 'The usage record resumes.';
    case 'worker_ended': {
      const { worker, pid, reason, pauseMs } = happening;
      return `Worker ${figure(worker)} (pid ${pid}) ended (${reason}); another one is started after ${durationText(pauseMs)}.`;
    }
    case 'plan_reverted':
      return revertText(happening);
    case 'plan_retried':
      return retryText(happening);
    case 'reload': {
      const { before, after, edits } = happening;
      if (before === after) return `Configuration ${after} was loaded again.`;
      const what = edits.length === 0 ? 'no setting changed' : edits.join('; ');
      return `Configuration ${after} is in force: ${what}.`;
    }
    case 'reload_failed': {
      const { before, after, error } = happening;
      const which = after === undefined ? 'The configuration' : `Configuration ${after}`;
      return `${which} was not loaded, so configuration ${before} stays in force: ${firstLine(error)}`;
    }
  }
}

/**
 * Formats a duration with its two largest units: "1 h 5 min", "12 s". A duration below ten seconds is shown with tenths
 * of a second.
 */
function durationText(ms: number): string {
  if (ms < 9_950) return `${Number((ms / 1_000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1_000);
  const parts = [
    { amount: Math.floor(seconds / 86_400), unit: 'd' },
    { amount: Math.floor(seconds / 3_600) % 24, unit: 'h' },
    { amount: Math.floor(seconds / 60) % 60, unit: 'min' },
    { amount: seconds % 60, unit: 's' },
  ];
  const first = parts.findIndex(({ amount }) => amount > 0);
  return parts
    .slice(first, first + 2)
    .filter(({ amount }) => amount > 0)
    .map(({ amount, unit }) => `${amount} ${unit}`)
    .join(' ');
}

function storeOf({ server }: StoreEvent): string {
  return server === undefined ? 'Redis' : `Redis server ${server}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
