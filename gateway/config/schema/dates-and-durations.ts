/**
 * A date, or a date and time with its zone (RFC 3339). Without a zone a time would mean something else on another
 * machine.
 */
export const datePattern = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** Epoch ms of a date (its first instant in UTC) or date-time; undefined when it is none, 30 February included. */
export function parseDate(text: string): number | undefined {
  if (!datePattern.test(text)) return undefined;
  const day = text.slice(0, 10);
  const dayMs = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return undefined;
  const epochMs = Date.parse(text);
  return Number.isNaN(epochMs) ? undefined : epochMs;
}

/** A duration in whole seconds, minutes or hours. */
export const durationPattern = /^[1-9]\d{0,8}[smh]$/;

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Milliseconds of a duration that matches `durationPattern`: `60s`, `5m`, `24h`. */
export function parseDuration(text: string): number {
  const unit = text.at(-1) as keyof typeof unitMs;
  return Number(text.slice(0, -1)) * unitMs[unit];
}
