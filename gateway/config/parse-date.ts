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
