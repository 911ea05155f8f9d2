import type { BanPolicy } from '../model.ts';

/** Something that happened to a key, to Redis, to a target, to a certificate, to the usage record or to the configuration. */
export type Happening =
  | {
      readonly kind: 'ban';
      readonly keyId: string;
      readonly plan: string | undefined;
      /** 1: the first ban in a row. */
      readonly level: number;
      readonly untilMs: number;
      readonly policy: BanPolicy;
    }
  | {
      readonly kind: 'ban_ended';
      readonly keyId: string;
      readonly plan: string | undefined;
      readonly untilMs: number;
      readonly ended: 'expired' | 'lifted';
    }
  | { readonly kind: 'store_away'; readonly reason: string; readonly onFailure: 'local' | 'refuse' }
  | { readonly kind: 'store_back'; readonly awayMs: number; readonly decidedAlone: number }
  | {
      readonly kind: 'target_unhealthy';
      readonly upstream: string;
      readonly target: string;
      /** Silent: it gets requests where no other target is healthy. */
      readonly health: 'silent' | 'down';
      readonly reason: string | undefined;
    }
  | {
      readonly kind: 'target_healthy';
      readonly upstream: string;
      readonly target: string;
      readonly unhealthyMs: number;
    }
  | {
      readonly kind: 'certificate_expiring';
      readonly listener: string;
      /** As it stands in the log. */
      readonly notice: string;
      readonly notAfterMs: number;
    }
  | { readonly kind: 'recording_paused'; readonly reason: string }
  | { readonly kind: 'recording_resumed' }
  | {
      readonly kind: 'reload';
      readonly before: string;
      readonly after: string;
      /** What it did to the limits of plans. */
      readonly edits: readonly string[];
    }
  | {
      readonly kind: 'reload_failed';
      readonly before: string;
      readonly after: string | undefined;
      readonly error: string;
    };

export type EventKind = Happening['kind'];

/** What stands in the list for many of one kind: "and 312 more keys were banned". */
export const eventsInWords: Readonly<Record<EventKind, string>> = {
  ban: 'keys were banned',
  ban_ended: 'bans ended',
  store_away: 'times Redis went away',
  store_back: 'times Redis came back',
  target_unhealthy: 'targets became unhealthy',
  target_healthy: 'targets became healthy again',
  certificate_expiring: 'certificates expire',
  recording_paused: 'times the recording of usage paused',
  recording_resumed: 'times the recording of usage went on',
  reload: 'reloads',
  reload_failed: 'failed reloads',
};

/** One sentence that says it all; times are UTC. */
export function eventText(happening: Happening, nowMs: number): string {
  switch (happening.kind) {
    case 'ban': {
      const { level, untilMs, policy } = happening;
      const lengthMs = Math.min(policy.forMs * 2 ** (level - 1), policy.maxMs);
      const nth = level > 1 ? `, for the ${ordinal(level)} time in a row` : '';
      const cause = `${policy.after.toLocaleString('en-US')} of its requests were refused within ${durationText(policy.withinMs)}`;
      return `${whoOf(happening)} is banned for ${durationText(lengthMs)}, until ${timeText(untilMs, nowMs)}${nth}: ${cause}.`;
    }
    case 'ban_ended':
      return happening.ended === 'lifted'
        ? `The ban of ${whoOf(happening)} was lifted.`
        : `The ban of ${whoOf(happening)} ran out.`;
    case 'store_away':
      return happening.onFailure === 'local'
        ? `Redis is away (${happening.reason}): each process counts limits on its own.`
        : `Redis is away (${happening.reason}): requests are answered 503.`;
    case 'store_back': {
      const { awayMs, decidedAlone } = happening;
      const alone =
        decidedAlone === 0
          ? ''
          : `; ${decidedAlone.toLocaleString('en-US')} requests were decided without it`;
      return `Redis is back after ${durationText(awayMs)}${alone}.`;
    }
    case 'target_unhealthy': {
      const { upstream, target, health, reason } = happening;
      const effect =
        health === 'down'
          ? 'is down and gets no requests'
          : 'is silent and passed over while another is healthy';
      return `Target ${target} of upstream ${upstream} ${effect}${reason === undefined ? '' : `: ${reason}`}.`;
    }
    case 'target_healthy': {
      const { upstream, target, unhealthyMs } = happening;
      return `Target ${target} of upstream ${upstream} is healthy again after ${durationText(unhealthyMs)}.`;
    }
    case 'certificate_expiring':
      return `${happening.notice.charAt(0).toUpperCase()}${happening.notice.slice(1)}.`;
    case 'recording_paused':
      return `The usage record pauses: ${happening.reason}.`;
    case 'recording_resumed':
      return 'The usage record goes on.';
    case 'reload': {
      const { before, after, edits } = happening;
      if (before === after) return `Configuration ${after} was loaded again.`;
      const what = edits.length === 0 ? `it replaces ${before}` : edits.join('; ');
      return `Configuration ${after} is in force: ${what}.`;
    }
    case 'reload_failed': {
      const { before, after, error } = happening;
      const which = after === undefined ? 'The configuration' : `Configuration ${after}`;
      return `${which} was not loaded, ${before} stays in force: ${firstLine(error)}`;
    }
  }
}

/** The two largest units: "1 h 5 min", "12 s"; below ten seconds with tenths. */
export function durationText(ms: number): string {
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

function whoOf({ keyId, plan }: { readonly keyId: string; readonly plan: string | undefined }): string {
  return plan === undefined ? keyId : `${keyId} (${plan})`;
}

/** With the day, if that is another one. */
function timeText(atMs: number, nowMs: number): string {
  const [day, time = ''] = new Date(atMs).toISOString().split('T');
  const clock = `${time.slice(0, 8)} UTC`;
  return new Date(nowMs).toISOString().startsWith(`${day}T`) ? clock : `${clock} on ${day}`;
}

function ordinal(number: number): string {
  return { 2: 'second', 3: 'third' }[number] ?? `${number}th`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
