/** What a duration looks like: whole seconds, minutes or hours. */
export const durationPattern = /^[1-9]\d{0,8}[smh]$/;

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Milliseconds of a duration that matches `durationPattern`: `60s`, `5m`, `24h`. */
export function parseDuration(text: string): number {
  const unit = text.at(-1) as keyof typeof unitMs;
  return Number(text.slice(0, -1)) * unitMs[unit];
}
