import type { KeyChangeKind } from '../capabilities/interfaces/events.ts';
import { keyChanges } from '../capabilities/lists/events.ts';
import { type LimitsByField, toLimits } from '../keys/limits/limit-fields.ts';
import { limitChangeTexts, limitsText, planChangeText } from '../keys/limits/limit-texts.ts';
import { beginning, counted, ending, figure } from '../shared/words/figures.js';
import type { ChangedMembers, KeyChange } from './changes.ts';
import { instantText, laterPlansText } from './wording.ts';

const keyChangeKinds: ReadonlyMap<string, KeyChangeKind> = new Map(Object.entries(keyChanges));

/** A sentence with times in UTC. */
export function keyChangeText(change: KeyChange, nowMs: number): string {
  const doubt =
    change.error === undefined ? '' : ' The store did not reply, so the change may not be in force.';
  return `${sentenceOf(change, nowMs)}${doubt}`;
}

function sentenceOf(change: KeyChange, nowMs: number): string {
  const ofCapability = keyChangeKinds.get(change.action);
  if (ofCapability !== undefined) return ofCapability.text(change, nowMs);
  const { action, by, key = 'keys', before, after, appliedLimits } = change;
  switch (action) {
    case 'create':
      return `${by} created the key ${key}${typeof after?.plan === 'string' ? ` (${after.plan})` : ''}.`;
    case 'secret':
      return after === undefined ? `${by} removed a secret of ${key}.` : `${by} issued a secret of ${key}.`;
    case 'rotate':
      if (after?.oldEndsAt !== undefined) {
        const lost = after.replaces === undefined ? '' : ' and the new one of the first request has ended';
        const rotated = lost === '' ? 'rotated' : 'repeated the rotation of';
        return `The holder ${rotated} a secret of ${key}; the old one is valid${instantText('until', after.oldEndsAt, nowMs)}${lost}.`;
      }
      return `${by} rotated the secret of ${key}${othersText(after?.othersEndAt, nowMs)}.`;
    case 'revoke':
      return `${by} revoked ${key}.`;
    case 'restore':
      return `${by} restored ${key}.`;
    case 'update':
      return `${by} changed ${key}${membersText(before, after, appliedLimits)}.`;
    case 'delete':
      return `${by} deleted the key ${key}.`;
    case 'ban':
      return `${by} banned ${key}${periodText(after)}${reasonText(after?.reason)}.`;
    case 'unban':
      return before?.bannedUntilAt === undefined
        ? `${by} found no ban of ${key} to lift.`
        : `${by} lifted the ban of ${key}.`;
    case 'grant':
      return `${by} granted ${key} ${grantedText(after?.limits)}${periodText(after)}.`;
    case 'ungrant':
      return `${by} ended the grant of ${key}.`;
    case 'leak':
      return `${by} reported a leaked secret of ${key}, which ${after?.ended === true ? 'has ended' : 'is still valid'}${descendantsText(after?.descendants)}.`;
    case 'import':
      return `${by} imported ${typeof after?.created === 'number' ? figure(after.created) : 'some'} keys.`;
    default:
      return `${by} changed ${key} (${action}).`;
  }
}

/**
 * ": plan free → pro (60 → 600 a minute), name". Only values from the configuration are included. A customer's name could contain characters that reverse the
 * text, or words that imitate another change.
 */
function membersText(
  before: ChangedMembers = {},
  after: ChangedMembers = {},
  appliedLimits: KeyChange['appliedLimits'],
): string {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const ofLimits =
    appliedLimits === undefined
      ? []
      : limitChangeTexts(toLimits(appliedLimits.before), toLimits(appliedLimits.after));
  const isOfPlan = typeof before.plan === 'string' && typeof after.plan === 'string';
  const parts = names.flatMap((name) => {
    const [from, to] = [before[name], after[name]];
    if (name === 'plan' && isOfPlan) return planChangeText(String(from), String(to), ofLimits);
    if (name === 'limits' && ofLimits.length > 0) return isOfPlan ? [] : ofLimits;
    return name === 'changes' ? laterPlansText(from, to) : name;
  });
  return parts.length === 0 ? '' : `: ${parts.join(', ')}`;
}

/** "100 a minute, 5,000 a day". */
function grantedText(limits: unknown): string {
  if (typeof limits !== 'object' || limits === null) return 'other limits';
  return limitsText(toLimits(limits as LimitsByField)) || 'other limits';
}

/** " from 2026-11-25 00:00 UTC until 2026-11-25 24:00 UTC", without a time that the record does not have. */
function periodText({ fromAt, untilAt }: ChangedMembers = {}): string {
  const [fromMs, untilMs] = [Date.parse(String(fromAt)), Date.parse(String(untilAt))];
  const from = Number.isNaN(fromMs) ? '' : ` from ${beginning(fromMs)}`;
  return Number.isNaN(untilMs) ? from : `${from} until ${ending(untilMs)}`;
}

function reasonText(reason: unknown): string {
  return typeof reason === 'string' ? `: ${reason}` : '';
}

/** ", as have 2 secrets that its holder issued from it", or an empty text. */
function descendantsText(descendants: unknown): string {
  if (!Array.isArray(descendants) || descendants.length === 0) return '';
  return `, as ${descendants.length === 1 ? 'has' : 'have'} ${counted(descendants.length, 'secret')} that its holder issued from it`;
}

function othersText(endAt: unknown, nowMs: number): string {
  const until = instantText('until', endAt, nowMs);
  return until === '' ? '' : `; the last of the older ones is valid${until}`;
}
