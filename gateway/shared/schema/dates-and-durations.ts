import { dayMs } from '../words/figures.js';

/** RFC 3339. A time without a zone would have different meanings on different machines. */
export const datePattern = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const firstMs = Date.parse('0000-01-01T00:00:00Z');
const lastMs = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Epoch ms; a date is the day's start in UTC. Undefined for an invalid date such as 30 February, and for a year in UTC outside 0000 to
 * 9999. A key with such a year could not be exported and imported again.
 */
export function parseDate(text: string): number | undefined {
  if (!datePattern.test(text)) return undefined;
  const day = text.slice(0, 10);
  const dayMs = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return undefined;
  const epochMs = Date.parse(text);
  return epochMs >= firstMs && epochMs <= lastMs ? epochMs : undefined;
}

export function isoOf(epochMs: number): string;
export function isoOf(epochMs: number | undefined): string | undefined;
export function isoOf(epochMs: number | undefined): string | undefined {
  return epochMs === undefined ? undefined : new Date(epochMs).toISOString();
}

/** Undefined for a secret that never expires (Infinity). */
export function isoOfEnd(expiresMs: number): string | undefined {
  return Number.isFinite(expiresMs) ? isoOf(expiresMs) : undefined;
}

/** `2026-11-22T10:31:00Z` */
export function isoSecondOf(epochMs: number): string {
  return `${isoOf(epochMs).slice(0, 19)}Z`;
}

/** Rounded up and at least 0, as in `Retry-After` (delta-seconds, RFC 9110 §10.2.3). */
export function secondsUntil(instantMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil((instantMs - nowMs) / 1000));
}

export const durationPattern = /^[1-9]\d{0,8}[smh]$/;

export const intervalPattern = /^[1-9]\d{0,5}[smhd]$/;

export const timeoutPattern = /^[1-9]\d{0,8}(ms|s|m|h)$/;

/** A cache lifetime for browsers, which may be 0. */
export const agePattern = /^(0|[1-9]\d{0,5})[smhd]$/;

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** `500ms`, `60s`, `5m`, `24h` or `365d`. */
export function parseDuration(text: string): number {
  const unit = text.replace(/^\d+/, '');
  return Number.parseInt(text, 10) * (unit === 'd' ? dayMs : (unitMs[unit] ?? Number.NaN));
}

/** The shortest text: `500ms`, `2s`, `2m`. */
export function formatDuration(ms: number): string {
  const [unit, length] = Object.entries(unitMs).findLast(([, length]) => ms % length === 0) ?? ['ms', 1];
  return `${ms / length}${unit}`;
}

/** The shortest text: `0s`, `30m`, `365d`. */
export function formatAge(ms: number): string {
  if (ms === 0) return '0s';
  return ms % dayMs === 0 ? `${ms / dayMs}d` : formatDuration(ms);
}

/** Includes its complete first and last minute, hour or day. Epoch ms on the store's clock. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Removes the time of day if it is 00:00 UTC. */
export function dateText(iso: string): string {
  return iso.replace(/T00:00:00(\.000)?Z$/, '');
}
