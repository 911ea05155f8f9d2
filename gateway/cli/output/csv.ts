import { oneLine } from '../../shared/terminal/text-width.ts';

/** Makes the lines of comma-separated values (RFC 4180), the titles first. */
export function csv(
  titles: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): readonly string[] {
  return [titles, ...rows].map((row) => row.map(field).join(','));
}

/** Escapes a cell by RFC 4180 §2.6 and §2.7. A text that a spreadsheet would read as a formula gets an apostrophe in front. */
function field(value: string | number): string {
  const text = oneLine(String(value));
  const safe = /^[=+\-@\t]/.test(text) && typeof value === 'string' ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
