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
 * Returns a sentence that explains why the replay of a minute differs from the record. `circumstances` is sorted by
 * time. An event during the minute has precedence. An earlier event of the same day can also explain the difference,
 * because the day window lasts until midnight. An edit or a grant that concerns none of the keys explains nothing.
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
  if (grant !== undefined) return `A grant was in force: ${grant.text}`;
  const outage = lastSpan(before, 'store_away', 'store_back', fromMs);
  if (outage !== undefined) return `From ${timeOf(outage.atMs)} on: ${outage.text}`;
  const pause = lastSpan(before, 'recording_paused', 'recording_resumed', fromMs);
  if (pause !== undefined) return `From ${timeOf(pause.atMs)} on: ${pause.text}`;
  const edit = ofKeys.find(({ kind, atMs }) => kind === 'edit' && atMs >= fromMs);
  if (edit !== undefined)
    return `An edit took effect at ${timeOf(edit.atMs)}, so other limits may have applied before: ${edit.text}`;
  const today = before.filter(({ atMs }) => atMs >= dayStartMs);
  const start = today.findLast(({ kind }) => kind === 'start');
  if (start !== undefined) return `The counts started over: ${start.text}`;
  const earlier = today.findLast(({ kind }) => kind !== 'grant');
  if (earlier !== undefined) return `Earlier that day, ${timeOf(earlier.atMs)}: ${earlier.text}`;
  return 'No outage, edit or grant is on record that explains the difference.';
}

/** Finds the circumstance that began before the end of the minute and ended after the minute began. */
function lastSpan(
  before: readonly Circumstance[],
  begin: Circumstance['kind'],
  end: Circumstance['kind'],
  fromMs: number,
): Circumstance | undefined {
  const begun = before.findLast(({ kind }) => kind === begin);
  if (begun === undefined) return undefined;
  const ended = before.find(({ kind, atMs }) => kind === end && atMs >= begun.atMs);
  // Decisions during an outage are written to Redis shortly after the outage, so the outage also explains the minute
  // after it.
  return ended === undefined || ended.atMs + minuteMs > fromMs ? begun : undefined;
}

function timeOf(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
