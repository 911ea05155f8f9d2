import type { KeyChange } from '../fleet/changes.ts';
import { percentText } from '../keys/guards.ts';
import type { WebhookEventType } from '../shared/model.ts';
import { isoOf } from '../shared/schema/dates-and-durations.ts';
import { maskSecrets } from '../shared/secrets.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { eventTypeOf } from './event-types.ts';
import { noticeText } from './notice-text.ts';
import type { Notice } from './notices.ts';

/** The body of a webhook. The body contains ids, and neither a secret nor a complete digest. */
export interface EventBody {
  readonly type: WebhookEventType;
  /** The time of the event, ISO 8601 in UTC. */
  readonly timestamp: string;
  /** `text` is the event in one sentence. `notListed` is the number of list entries that were omitted because the body has a maximum size. */
  readonly data: Readonly<Record<string, unknown>> & { readonly text: string; readonly notListed?: number };
}

/**
 * Makes the event of a notice; undefined if receivers get no event. The JSON text of the event has at most `webhookBodyBytesMax` octets.
 *
 * @param atMs the time of the event, epoch ms
 */
export function makeEventBody(notice: Notice, atMs: number, bounds: Bounds): EventBody | undefined {
  const type = eventTypeOf(notice);
  if (type === undefined) return undefined;
  const timestamp = new Date(atMs).toISOString();
  const text = noticeText(notice, atMs);
  const { list, ...members } = membersOf(notice);
  const { name, items = [], more = 0 } = list ?? {};
  const build = (charsMax: number, listed: number): EventBody => {
    const notListed = items.length - listed + more;
    const ofList = name === undefined ? {} : { [name]: items.slice(0, listed) };
    const data = { ...members, ...ofList, ...(notListed > 0 && { notListed }), text };
    return { type, timestamp, data: safely(data, charsMax) };
  };
  const fits = (body: EventBody) => Buffer.byteLength(JSON.stringify(body)) <= bounds.webhookBodyBytesMax;
  for (let charsMax = bounds.webhookTextCharsMax; ; charsMax = Math.floor(charsMax / 2)) {
    for (let listed = Math.min(items.length, bounds.webhookListMax); ; listed = Math.floor(listed * 0.9)) {
      const body = build(charsMax, listed);
      if (fits(body) || charsMax === 0) return body;
      if (listed === 0) break;
    }
  }
}

/** The ids that operators have chosen. An id may look like a digest, and a receiver needs the whole id. */
const idMembers: ReadonlySet<string> = new Set(['key', 'plan', 'operation', 'upstream']);

/** Cuts every text, and masks every text that is not an id. */
function safely(data: EventBody['data'], charsMax: number): EventBody['data'] {
  const safe = (value: unknown, name = ''): unknown => {
    if (typeof value === 'string') return cut(idMembers.has(name) ? value : maskSecrets(value), charsMax);
    if (Array.isArray(value)) return value.map((entry) => safe(entry));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, safe(member, name)]));
  };
  return safe(data) as EventBody['data'];
}

function cut(text: string, charsMax: number): string {
  return text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
}

/** The members of `data` except for `text`. `list` is one more member, which may be shortened. */
type Members = Readonly<Record<string, unknown>> & { readonly list?: MemberList | undefined };

interface MemberList {
  readonly name: string;
  readonly items: readonly unknown[];
  /** The number of items that are not in `items`. */
  readonly more?: number | undefined;
}

function membersOf(notice: Notice): Members {
  switch (notice.kind) {
    case 'ban': {
      const { keyId: key, plan, level, untilMs } = notice;
      return { key, plan, level, untilAt: isoOf(untilMs) };
    }
    case 'ban_ended': {
      const { keyId: key, plan, ended, untilMs } = notice;
      return { key, plan, ended, untilAt: isoOf(untilMs) };
    }
    case 'key_changed':
      return changeMembers(notice);
    case 'store_away': {
      const { server, reason, onFailure } = notice;
      return { server, reason, onFailure };
    }
    case 'store_back': {
      const { server, awayMs } = notice;
      return { server, awaySeconds: Math.round(awayMs / 1_000) };
    }
    case 'target_unhealthy': {
      const { upstream, target, health, reason } = notice;
      return { upstream, target, health, reason };
    }
    case 'target_healthy': {
      const { upstream, target, unhealthyMs } = notice;
      return { upstream, target, unhealthySeconds: Math.round(unhealthyMs / 1_000) };
    }
    case 'reload': {
      const { before, after, edits } = notice;
      return { before, after, list: { name: 'edits', items: edits } };
    }
    case 'reload_failed': {
      const { before, after, error } = notice;
      // Lines that begin with a blank quote the file.
      const problems = error.split('\n').filter((line) => line !== '' && !line.startsWith(' '));
      return { before, after, list: { name: 'problems', items: problems } };
    }
    case 'recording_paused':
      return { reason: notice.reason };
    case 'quota_threshold': {
      const { keyId: key, plan, window, group, percent, used, limit, endsAtMs, source } = notice;
      return { key, plan, window, group, percent, used, limit, windowEndsAt: isoOf(endsAtMs), source };
    }
    case 'secret_leaked': {
      const { keyId: key, plan, digestStart, source, url, type, ended, descendants } = notice;
      const list = { name: 'descendants', items: descendants };
      return { key, plan, digestStart, source, url, secretType: type, ended, list };
    }
    case 'key_expiring': {
      const { keyId: key, plan, digestStart, hasOther, expiresMs, days } = notice;
      return { key, plan, digestStart, hasOther, expiresAt: isoOf(expiresMs), days };
    }
    case 'operation_sunset': {
      const { operation, method, path, sunsetMs, afterSunset, days, successor, called } = notice;
      const sunsetAt = isoOf(sunsetMs);
      const callers = called?.callers.map(({ keyId: key, requests }) => ({ key, requests }));
      return {
        ...{ operation, method, path, sunsetAt, afterSunset, days, successor },
        callersDays: called?.days,
        list: callers && { name: 'callers', items: callers, more: called?.more },
      };
    }
    case 'plan_changed': {
      const { plan, cause, edits } = notice;
      return { plan, cause, list: { name: 'edits', items: edits } };
    }
    case 'plan_reverted': {
      const { plan, sinceMs, requests, refused, refusedShareMax, edit, inForce } = notice;
      const refusedAtMost = percentText(refusedShareMax);
      return { plan, sinceAt: isoOf(sinceMs), requests, refused, refusedAtMost, edit, inForce };
    }
    case 'recording_resumed':
    case 'certificate_expiring':
    case 'worker_ended':
    case 'plan_retried':
      return {};
  }
}

function changeMembers({ action, by, key, after, before, error }: KeyChange): Members {
  const change = action === 'secret' ? (after === undefined ? 'secret_removed' : 'secret_issued') : action;
  const { plan, secret, oldEndsAt, othersEndAt = oldEndsAt, expiresAt, created } = after ?? {};
  return {
    key,
    change,
    by,
    plan: action === 'create' ? plan : undefined,
    count: action === 'import' ? created : undefined,
    digestStart: secret ?? before?.secret,
    expiresAt,
    oldEndsAt: othersEndAt,
    // The store did not reply, so the change may not be in force.
    unconfirmed: error === undefined ? undefined : true,
  };
}
