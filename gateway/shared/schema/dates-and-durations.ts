/**
 * A date, or a date and time with its zone (RFC 3339). Without a zone a time would mean something else on another
 * machine.
 */
export const datePattern = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const firstMs = Date.parse('0000-01-01T00:00:00Z');
const lastMs = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Epoch ms of a date (its first instant in UTC) or date-time; undefined when it is none, 30 February included, or when its zone moves it out
 * of the years that can be written so in UTC: a key with such an instant could not be exported and imported again.
 */
export function parseDate(text: string): number | undefined {
  if (!datePattern.test(text)) return undefined;
  const day = text.slice(0, 10);
  const dayMs = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return undefined;
  const epochMs = Date.parse(text);
  return epochMs >= firstMs && epochMs <= lastMs ? epochMs : undefined;
}

/** An instant as text in UTC; undefined where there is none. */
export function isoOf(epochMs: number): string;
export function isoOf(epochMs: number | undefined): string | undefined;
export function isoOf(epochMs: number | undefined): string | undefined {
  return epochMs === undefined ? undefined : new Date(epochMs).toISOString();
}

/** The end of a secret; undefined where it never ends (Infinity). */
export function isoOfEnd(expiresMs: number): string | undefined {
  return Number.isFinite(expiresMs) ? isoOf(expiresMs) : undefined;
}

/** An instant without fractions of a second: `2026-11-22T10:31:00Z`. */
export function isoSecondOf(epochMs: number): string {
  return `${isoOf(epochMs).slice(0, 19)}Z`;
}

/** A duration in whole seconds, minutes or hours. */
export const durationPattern = /^[1-9]\d{0,8}[smh]$/;

/** The same for a timeout, which may also be of whole milliseconds. */
export const timeoutPattern = /^[1-9]\d{0,8}(ms|s|m|h)$/;

/** The same for the age of something that browsers remember: also none, and days. */
export const agePattern = /^(0|[1-9]\d{0,5})[smhd]$/;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const dayMs = 86_400_000;

/** Milliseconds of a text that matches one of the patterns: `500ms`, `60s`, `5m`, `24h`, `365d`. */
export function parseDuration(text: string): number {
  const unit = text.replace(/^\d+/, '');
  return Number.parseInt(text, 10) * (unit === 'd' ? dayMs : (unitMs[unit] ?? Number.NaN));
}

/** The shortest text of a duration: `500ms`, `2s`, `2m`. */
export function formatDuration(ms: number): string {
  const [unit, length] = Object.entries(unitMs).findLast(([, length]) => ms % length === 0) ?? ['ms', 1];
  return `${ms / length}${unit}`;
}

/** Includes the whole minute, hour or day of both instants. Epoch ms on the store's clock. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}
