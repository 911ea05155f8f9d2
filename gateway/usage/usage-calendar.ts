import type { Period } from '../shared/schema/dates-and-durations.ts';

const minutesPerHour = 60;
const hoursPerDay = 24;

/** The lengths of the minutes, hours and days of the usage record. Minutes, hours and days are numbered since 1970 in UTC. */
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

export const hoursOfDay: readonly number[] = Array.from({ length: hoursPerDay }, (_, hour) => hour);

/** The positions of an hour in its day (0 to 23) and of a minute in its hour (0 to 59). */
export function hourOfDay(hour: number): number {
  return hour % hoursPerDay;
}

export function minuteOfHour(minute: number): number {
  return minute % minutesPerHour;
}

export function minutesField(hour: number): string {
  return `minutes:${hourText(hour)}`;
}

/** Returns the hour of the day in two digits, as the names of fields have it. */
export function hourText(hour: number): string {
  return String(hourOfDay(hour)).padStart(2, '0');
}

/** Whether a span of `lengthMs` that begins at `atMs` overlaps a period. */
export function isWithin(atMs: number, lengthMs: number, { fromMs, toMs }: Period): boolean {
  return atMs + lengthMs > fromMs && atMs <= toMs;
}

export function hoursWithin(day: number, period: Period, { hourMs, dayMs }: UsageCalendar): number[] {
  const firstHour = (day * dayMs) / hourMs;
  return hoursOfDay.map((hour) => firstHour + hour).filter((hour) => isWithin(hour * hourMs, hourMs, period));
}

export function daysOf({ fromMs, toMs }: Period, { dayMs }: UsageCalendar): number[] {
  const first = Math.floor(fromMs / dayMs);
  return Array.from({ length: Math.floor(toMs / dayMs) - first + 1 }, (_, index) => first + index);
}
