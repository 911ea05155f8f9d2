import { isoSecondOf } from '../../shared/schema/dates-and-durations.ts';
import { secondsUntil } from './rate-limit-fields.ts';
import type { Refusal } from './refusal-response.ts';

/** Returns the refusal during a brownout, a rehearsal of the removal of an operation. Timestamps are epoch ms. */
export function brownoutRefusal({
  nowMs,
  endMs,
  sunsetMs,
}: {
  readonly nowMs: number;
  readonly endMs: number;
  /** When the operation is removed. */
  readonly sunsetMs: number;
}): Refusal {
  const seconds = secondsUntil(endMs, nowMs);
  const ends =
    endMs < sunsetMs
      ? `It ends at ${secondOf(endMs)}, in ${seconds} s. The operation is removed for good on ${secondOf(sunsetMs)}.`
      : `It lasts until the operation is removed for good on ${secondOf(sunsetMs)}.`;
  const message = `This is a rehearsal of the removal of this operation. ${ends} A Link header names its successor if there is one.`;
  return { code: 'gone', message, fields: ['Retry-After', String(seconds)] };
}

/** Formats a timestamp, rounded up to a whole second. A client that retries at this second is served. */
function secondOf(epochMs: number): string {
  return isoSecondOf(Math.ceil(epochMs / 1_000) * 1_000);
}
