import { eventText } from '../fleet/event-text.ts';
import { timeText, whoOf } from '../fleet/wording.ts';
import { counted, figure } from '../shared/words/figures.js';
import type { KeyExpiring, Notice, OperationSunset, SecretLeaked } from './notices.ts';

/** The notice in one sentence, with ids and without secrets. Times are UTC. */
export function noticeText(notice: Notice, nowMs: number): string {
  switch (notice.kind) {
    case 'quota_threshold': {
      const { percent, used, limit, window, group } = notice;
      const ofGroup = group === undefined ? '' : ` of the group ${group}`;
      return `${whoOf(notice)} has used ${percent} % of its limit${ofGroup} for the ${window}: ${figure(used)} of ${figure(limit)}.`;
    }
    case 'secret_leaked':
      return leakText(notice);
    case 'key_expiring':
      return expiryText(notice, nowMs);
    case 'operation_sunset':
      return sunsetText(notice, nowMs);
    case 'plan_changed': {
      const { plan, cause, edits } = notice;
      const why = cause === 'schedule' ? ' at its date' : '';
      return `Plan ${plan} changed${why}: ${edits.join(', ')}.`;
    }
    default:
      return eventText(notice, nowMs);
  }
}

function leakText({ digestStart, source, url, ended, descendants, ...key }: SecretLeaked): string {
  const where = url === undefined ? '' : ` at ${url}`;
  const effect = ended ? 'The secret was ended.' : 'The secret was not ended by this report.';
  const issued = descendants.map((one) => `${one}…`).join(', ');
  const others =
    issued === '' ? '' : ` The secrets that its holder issued from it were ended too: ${issued}.`;
  return `The secret ${digestStart}… of ${whoOf(key)} was found${where}, reported by ${source}. ${effect}${others}`;
}

function expiryText({ digestStart, hasOther, expiresMs, ...key }: KeyExpiring, nowMs: number): string {
  const what = hasOther ? `The secret ${digestStart}… of ${whoOf(key)}` : `The last secret of ${whoOf(key)}`;
  return `${what} expires at ${timeText(expiresMs, nowMs)}.`;
}

function sunsetText({ method, path, sunsetMs, afterSunset, called }: OperationSunset, nowMs: number): string {
  const end = afterSunset === 'gone' ? 'is removed' : 'reaches its sunset';
  const who = called && counted(called.callers.length + called.more, 'key');
  const calls = called && `; ${who} called it in the last ${counted(called.days, 'day')}`;
  return `${method} ${path} ${end} at ${timeText(sunsetMs, nowMs)}${calls ?? ''}.`;
}
