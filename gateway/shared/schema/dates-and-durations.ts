import { dayMs } from '../words/figures.js';

/** A date, or a date and time with its zone (RFC 3339). A time without a zone would have different meanings on different machines. */
export const datePattern = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const firstMs = Date.parse('0000-01-01T00:00:00Z');
const lastMs = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Parses a date (as the day's start in UTC) or a date-time to epoch ms. Returns undefined for an invalid date such as 30 February, and for
 * a time whose year in UTC is not between 0000 and 9999. A key with any other year could not be exported and imported again.
 */
export function parseDate(text: string): number | undefined {
  if (!datePattern.test(text)) return undefined;
  const day = text.slice(0, 10);
  const dayMs = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return undefined;
  const epochMs = Date.parse(text);
  return epochMs >= firstMs && epochMs <= lastMs ? epochMs : undefined;
}

/** A timestamp as text in UTC; undefined for an undefined timestamp. */
export function isoOf(epochMs: number): string;
export function isoOf(epochMs: number | undefined): string | undefined;
export function isoOf(epochMs: number | undefined): string | undefined {
  return epochMs === undefined ? undefined : new Date(epochMs).toISOString();
}

/** The expiry of a secret as text; undefined for a secret that never expires (Infinity). */
export function isoOfEnd(expiresMs: number): string | undefined {
  return Number.isFinite(expiresMs) ? isoOf(expiresMs) : undefined;
}

/** A timestamp without fractions of a second: `2026-11-22T10:31:00Z`. */
export function isoSecondOf(epochMs: number): string {
  return `${isoOf(epochMs).slice(0, 19)}Z`;
}

/** Returns the seconds from now, rounded up and at least 0. `Retry-After` uses this form (delta-seconds, RFC 9110 §10.2.3). */
export function secondsUntil(instantMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil((instantMs - nowMs) / 1000));
}

/** A duration in whole seconds, minutes or hours. */
export const durationPattern = /^[1-9]\d{0,8}[smh]$/;

/** An interval in whole seconds, minutes, hours or days. */
export const intervalPattern = /^[1-9]\d{0,5}[smhd]$/;

/** A timeout in whole milliseconds, seconds, minutes or hours. */
export const timeoutPattern = /^[1-9]\d{0,8}(ms|s|m|h)$/;

/** A cache lifetime for browsers in whole seconds, minutes, hours or days. The lifetime may be 0. */
export const agePattern = /^(0|[1-9]\d{0,5})[smhd]$/;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Converts a duration such as `500ms`, `60s`, `5m`, `24h` or `365d` to milliseconds. */
export function parseDuration(text: string): number {
  const unit = text.replace(/^\d+/, '');
  return Number.parseInt(text, 10) * (unit === 'd' ? dayMs : (unitMs[unit] ?? Number.NaN));
}

/** Returns the shortest text for a duration: `500ms`, `2s`, `2m`. */
export function formatDuration(ms: number): string {
  const [unit, length] = Object.entries(unitMs).findLast(([, length]) => ms % length === 0) ?? ['ms', 1];
  return `${ms / length}${unit}`;
}

/** Returns the shortest text for the lifetime of a cache, which may be 0: `0s`, `30m`, `365d`. */
export function formatAge(ms: number): string {
  if (ms === 0) return '0s';
  return ms % dayMs === 0 ? `${ms / dayMs}d` : formatDuration(ms);
}

/** A period that includes its complete first and last minute, hour or day. Timestamps are epoch ms on the store's clock. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Removes the time of day from a timestamp if the time is 00:00 UTC. */
export function dateText(iso: string): string {
  return iso.replace(/T00:00:00(\.000)?Z$/, '');
}
