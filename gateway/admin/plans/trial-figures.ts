import * as z from 'zod';
import { timeText } from '../../fleet/wording.ts';
import { toLimitFields } from '../../keys/limits/limit-fields.ts';
import { limitsText } from '../../keys/limits/limit-texts.ts';
import { type Limits, planWindows } from '../../shared/model.ts';
import { isoSecondOf } from '../../shared/schema/dates-and-durations.ts';
import { counted, figure, percent } from '../../shared/words/figures.js';
import type { TrialRefusal, TrialUsage } from '../../usage/read/trial-reader.ts';
import { trialFigures, type trialOfKey } from '../wires/keys/key.ts';

const figures = z.object(trialFigures);

export type TrialFigures = z.output<typeof figures>;

export function figuresOf(usage: TrialUsage): TrialFigures {
  const { requests, refused, refusedBy, refusedNow, firstRefusedMs, lastRefusedMs } = usage;
  return {
    requests,
    refused,
    refusedBy,
    refusedNow,
    firstRefusedAt: firstRefusedMs === undefined ? undefined : isoSecondOf(firstRefusedMs),
    lastRefusedAt: lastRefusedMs === undefined ? undefined : isoSecondOf(lastRefusedMs),
  };
}

/** Returns the member `trial` of a key, from its usage in the last 24 hours. */
export function trialOfKeyView(trial: Limits, usage: TrialUsage, nowMs: number): z.output<typeof trialOfKey> {
  const { refused, firstRefusedMs, lastRefusedMs } = usage;
  const times =
    refused === 0 || firstRefusedMs === undefined || lastRefusedMs === undefined
      ? ''
      : ` First ${timeText(firstRefusedMs, nowMs)}, last ${timeText(lastRefusedMs, nowMs)}.`;
  return {
    limits: toLimitFields(trial),
    sentence: `${trialSentence(trial, usage)}${times}`,
    ...figuresOf(usage),
  };
}

interface CountedKeys {
  /** Keys with decided requests. */
  readonly all: number;
  /** Keys with requests that the trial would have refused. */
  readonly refused: number;
  /** Keys with such requests that the plan itself did not refuse. */
  readonly newlyRefused: number;
}

/**
 * Describes the decisions of a trial, for example "Trial 40 a minute: 132 of 4,100 requests (3.2 %) would have been
 * refused: 130 by the minute limit, 2 by bans. The plan itself refused 12."
 *
 * @param keys absent if the figures belong to one key
 */
export function trialSentence(
  trial: Limits,
  {
    requests,
    refused,
    refusedBy,
    refusedNow,
  }: Pick<TrialUsage, 'requests' | 'refused' | 'refusedBy' | 'refusedNow'>,
  keys?: CountedKeys,
): string {
  const start = `Trial ${limitsText(trial)}`;
  if (requests === 0) return `${start}: it has not decided a request yet.`;
  const now = ` The plan itself refused ${refusedNow === 0 ? 'none' : figure(refusedNow)}.`;
  if (refused === 0) {
    const of = keys === undefined ? '' : ` of ${counted(keys.all, 'key')}`;
    return `${start}: none of ${counted(requests, 'request')}${of} would have been refused.${now}`;
  }
  const share = percent(refused / requests);
  const who = keys === undefined ? '' : whoText(keys);
  return `${start}: ${figure(refused)} of ${counted(requests, 'request')} (${share}) would have been refused, ${refusedByText(refusedBy)}.${who}${now}`;
}

function whoText(keys: CountedKeys): string {
  const first = keys.newlyRefused === 0 ? '' : `, ${figure(keys.newlyRefused)} of them for the first time`;
  return ` ${figure(keys.refused)} of ${counted(keys.all, 'key')} would have had refusals${first}.`;
}

/** Describes what refused requests, for example "130 by the minute limit, 2 by bans". The largest number comes first. */
function refusedByText(refusedBy: TrialUsage['refusedBy']): string {
  return Object.entries(refusedBy)
    .sort(([, a], [, b]) => b - a)
    .map(([name, refused]) => `${figure(refused)} by ${refuser(name as TrialRefusal)}`)
    .join(', ');
}

function refuser(name: TrialRefusal): string {
  if (name === 'banned') return 'bans';
  if (name === 'group') return 'limits of groups';
  return planWindows.some((window) => window === name) ? `the ${name} limit` : 'the concurrency limit';
}
