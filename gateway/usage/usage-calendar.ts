const minutesPerHour = 60;
const hoursPerDay = 24;

/** Where an instant is in the record: minutes, hours and days of UTC, by their number since 1970. */
export interface UsageCalendar {
  readonly minuteMs: number;
  readonly hourMs: number;
  readonly dayMs: number;
}

/** @param minuteMs how long a minute is; tests have shorter ones */
export function usageCalendar(minuteMs: number): UsageCalendar {
  const hourMs = minutesPerHour * minuteMs;
  return { minuteMs, hourMs, dayMs: hoursPerDay * hourMs };
}

/** The place of an hour in its day, of a minute in its hour: 0 to 23, 0 to 59. */
export function hourOfDay(hour: number): number {
  return hour % hoursPerDay;
}

export function minuteOfHour(minute: number): number {
  return minute % minutesPerHour;
}

/** How the field with this hour's minutes is called. */
export function minutesField(hour: number): string {
  return `minutes:${String(hourOfDay(hour)).padStart(2, '0')}`;
}
