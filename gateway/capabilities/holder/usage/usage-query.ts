import {
  oneOf,
  parseQuery,
  periodOf,
  periodQuery,
  queryOf,
} from '../../../shared/schema/query-parameters.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** A holder reads at most 30 days, so there are no rows of months. */
const ownSteps = ['minute', 'hour', 'day'] as const;

const usageQuery = queryOf({ ...periodQuery, step: oneOf(ownSteps).default('minute') });

/** Parses the query parameters of a request for the usage of a key. @param nowMs the store's clock, epoch ms */
export function parseUsageQuery(search: string, nowMs: number, bounds: Bounds) {
  const parsed = parseQuery(usageQuery, search);
  if (parsed.kind === 'invalid') return parsed;
  const { step } = parsed.query;
  const period = periodOf(parsed.query, nowMs, daysMaxOf(step, bounds));
  return 'kind' in period ? period : ({ kind: 'parsed', step, period } as const);
}

function daysMaxOf(step: (typeof ownSteps)[number], bounds: Bounds): number {
  switch (step) {
    case 'minute':
      return bounds.ownUsageMinutesDaysMax;
    case 'hour':
      return bounds.ownUsageHoursDaysMax;
    case 'day':
      return bounds.ownUsageDaysMax;
  }
}
