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
}

/**
 * Returns the sentences that explain why the replay of a minute differs from the record: a grant that was in force, a later edit, and an
 * outage or pause during the minute. Without any of them, an earlier event of the same day can explain the difference, because the day
 * window lasts until midnight. An edit or a grant that concerns none of the keys explains nothing.
 *
 * @param circumstances sorted by time
 */
export function explainDifference(
  at: string,
  keys: readonly ReplayedKey[],
  circumstances: readonly Circumstance[],
): string {
  const fromMs = Date.parse(at);
  const toMs = fromMs + minuteMs;
  const dayStartMs = Math.floor(fromMs / dayMs) * dayMs;
  const ofKeys = circumstances.filter(({ concerns }) => concerns === undefined || keys.some(concerns));
  const before = ofKeys.filter(({ atMs }) => atMs < toMs);
  const grant = before.findLast(({ kind, untilMs = 0 }) => kind === 'grant' && untilMs > fromMs);
  const edit = ofKeys.find(({ kind, atMs }) => kind === 'edit' && atMs >= fromMs);
  const causes = [
    grant && `A grant was in force: ${grant.text}`,
    edit &&
      `An edit took effect at ${timeOf(edit.atMs)}, so other limits may have applied before: ${edit.text}`,
    lastSpan(ofKeys, 'store_away', 'store_back', { fromMs, toMs }),
    lastSpan(ofKeys, 'recording_paused', 'recording_resumed', { fromMs, toMs }),
  ].filter((cause) => cause !== undefined);
  if (causes.length > 0) return causes.join(' ');
  const today = before.filter(({ atMs }) => atMs >= dayStartMs);
  const start = today.findLast(({ kind }) => kind === 'start');
  if (start !== undefined) return `The counts started over: ${start.text}`;
  const earlier = today.findLast(({ kind }) => kind !== 'grant');
  if (earlier !== undefined) return `Earlier that day, ${timeOf(earlier.atMs)}: ${earlier.text}`;
  return 'No outage, edit or grant is on record that explains the difference.';
}

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
