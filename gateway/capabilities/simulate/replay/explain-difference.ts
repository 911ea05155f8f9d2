import { durationText } from '../../../fleet/wording.ts';
import { dayMs, minuteMs } from '../../../shared/words/figures.js';

/** A key of a minute that differs. The plan is undefined if the key is gone. */
export interface ReplayedKey {
  readonly id: string;
  readonly plan: string | undefined;
}

/** An entry of the list of events or of the list of changes that can explain why a replay differs from the record. */
export interface Circumstance {
  readonly kind:
    | 'store_away'
    | 'store_back'
    | 'recording_paused'
    | 'recording_resumed'
    | 'edit'
    | 'grant'
    | 'start';
  readonly atMs: number;
  /** One sentence. */
  readonly text: string;
  /** Whether the entry may have changed the decisions about a key. Without this member, the entry concerns every key. */
  readonly concerns?: (key: ReplayedKey) => boolean;
  /** When a grant ends. */
  readonly untilMs?: number | undefined;
  /** Whether the record of the edit leaves out limits from before the edit, so that a replay cannot use them. */
  readonly isCut?: boolean | undefined;
}

/** What the replay knows about the limits of the keys. */
interface LimitsKnown {
  /** Whether the replay changed the limits of a key in this minute or the one before. */
  readonly limitsChanged?: boolean | undefined;
  /** Epoch ms; limits before this time may have been others, because earlier changes were not read. */
  readonly changesReadSinceMs?: number | undefined;
}

/**
 * Returns the sentences that explain why the replay of a minute differs from the record: a grant or an edit that began or ended within the
 * minute, a later edit whose earlier limits are not on record, and an outage or pause during the minute. Without any of them, an earlier
 * event of the same day can explain the difference, because the day window lasts until midnight. An edit or a grant that concerns none of the
 * keys explains nothing.
 *
 * @param circumstances sorted by time
 */
export function explainDifference(
  at: string,
  keys: readonly ReplayedKey[],
  circumstances: readonly Circumstance[],
  { limitsChanged = false, changesReadSinceMs = 0 }: LimitsKnown = {},
): string {
  const fromMs = Date.parse(at);
  const toMs = fromMs + minuteMs;
  const dayStartMs = Math.floor(fromMs / dayMs) * dayMs;
  const ofKeys = circumstances.filter(({ concerns }) => concerns === undefined || keys.some(concerns));
  const before = ofKeys.filter(({ atMs }) => atMs < toMs);
  const isNear = (atMs = 0) => atMs >= fromMs - takesEffectWithinMs && atMs < toMs;
  const grant = before.findLast(
    ({ kind, atMs, untilMs }) => kind === 'grant' && (isNear(atMs) || isNear(untilMs)),
  );
  const edit = before.findLast(({ kind, atMs }) => kind === 'edit' && isNear(atMs));
  const cut = ofKeys.find(({ kind, atMs, isCut }) => kind === 'edit' && isCut && atMs >= fromMs);
  const causes = [
    grant && `A grant began or ended within the minute or shortly before: ${grant.text}`,
    edit && `An edit took effect within the minute or shortly before, at ${timeOf(edit.atMs)}: ${edit.text}`,
    limitsChanged &&
      grant === undefined &&
      edit === undefined &&
      'The limits of the key changed within the minute or shortly before.',
    fromMs < changesReadSinceMs &&
      `Other limits or grants may have applied before ${timeOf(changesReadSinceMs)}, because no earlier changes are read.`,
    cut &&
      `An edit at ${timeOf(cut.atMs)} changed more limits than its record has, so other limits may have applied before: ${cut.text}`,
    lastSpan(ofKeys, 'store_away', 'store_back', { fromMs, toMs }),
    lastSpan(ofKeys, 'recording_paused', 'recording_resumed', { fromMs, toMs }),
  ].filter((cause) => typeof cause === 'string');
  if (causes.length > 0) return causes.join(' ');
  const today = before.filter(({ atMs }) => atMs >= dayStartMs);
  const start = today.findLast(({ kind }) => kind === 'start');
  if (start !== undefined) return `The counts started over: ${start.text}`;
  const earlier = today.findLast(({ kind }) => kind !== 'grant');
  if (earlier !== undefined) return `Earlier that day, ${timeOf(earlier.atMs)}: ${earlier.text}`;
  return 'No outage, edit or grant is on record that explains the difference.';
}

/** The time within which all processes use an edit or a grant. A replay uses it from the minute in which the first process did. */
const takesEffectWithinMs = minuteMs;

/** Describes what began before the end of the minute and ended after the minute began. */
function lastSpan(
  circumstances: readonly Circumstance[],
  begin: Circumstance['kind'],
  end: Circumstance['kind'],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): string | undefined {
  const begun = circumstances.findLast(({ kind, atMs }) => kind === begin && atMs < toMs);
  if (begun === undefined) return undefined;
  const ended = circumstances.find(({ kind, atMs }) => kind === end && atMs >= begun.atMs);
  if (ended === undefined) return `From ${timeOf(begun.atMs)} on: ${begun.text}`;
  // Decisions during an outage are written to Redis shortly after the outage, so the outage also explains the minute
  // after it.
  if (ended.atMs + minuteMs <= fromMs) return undefined;
  return `From ${timeOf(begun.atMs)} on, for ${durationText(ended.atMs - begun.atMs)}: ${begun.text}`;
}

function timeOf(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
