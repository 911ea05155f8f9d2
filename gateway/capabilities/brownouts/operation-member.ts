import * as z from 'zod';
import { date } from '../../keys/key-schema.ts';
import { instant, list as shownList } from '../../keys/response-parts.ts';
import {
  formatDuration,
  intervalPattern,
  isoOf,
  parseDuration,
} from '../../shared/schema/dates-and-durations.ts';
import { expects, fields, list } from '../../shared/schema/schema-parts.ts';
import type { DeprecationMember } from '../interfaces/configuration.ts';

declare module '../interfaces/configuration.ts' {
  interface StatedDeprecationMembers extends z.output<z.ZodObject<typeof brownoutsShape>> {}
  interface DeprecationShownMembers extends z.output<z.ZodObject<typeof brownoutsShownShape>> {}
}

declare module '../../shared/model.ts' {
  interface DeprecationMembers {
    /**
     * Brownouts before the removal, the earliest first; absent when there are none. An operation with brownouts also has `sinceMs` and
     * `sunsetMs`.
     */
    readonly brownouts?: readonly Brownouts[] | undefined;
  }
}

/**
 * A series of brownouts. The first brownout begins at `fromMs` (epoch ms), and another brownout begins every `everyMs` after that. Each
 * brownout lasts `forMs`. The series ends when the next series begins. Without `everyMs` the series is one brownout.
 */
export interface Brownouts {
  readonly fromMs: number;
  readonly everyMs?: number | undefined;
  readonly forMs: number;
}

const brownoutsMax = 20;

function interval(what: string) {
  return z.string(expects(what)).regex(intervalPattern, expects(what)).transform(parseDuration);
}

export const brownoutsShape = {
  'x-brownouts': list(
    fields('a mapping with from, for and perhaps every', {
      from: date,
      every: interval('a duration such as 1h or 7d').optional(),
      for: interval('a duration such as 5m'),
    }),
    'a list of mappings, each with from, for and perhaps every',
  )
    .min(1, expects('a list of at least one mapping with from and for'))
    .max(brownoutsMax, expects(`a list of at most ${brownoutsMax} mappings`))
    .optional(),
};

export const brownoutsShownShape = {
  brownouts: shownList(z.object({ from: instant, every: z.string().optional(), for: z.string() }))
    .optional()
    .describe(
      'The rehearsals of the removal, as the API document states them. A series ends when the next one begins.',
    ),
};

export const brownoutsMember: DeprecationMember = {
  name: 'x-brownouts',

  compile({ 'x-brownouts': stated }) {
    const brownouts = stated?.map((series) => {
      return { fromMs: series.from, everyMs: series.every, forMs: series.for };
    });
    return brownouts === undefined ? {} : { brownouts };
  },

  *faults({
    isStated,
    stated: {
      'x-brownouts': all = [],
      'x-deprecated-since': sinceMs,
      'x-deprecated-sunset': sunsetMs,
      'x-after-sunset': afterSunset,
    },
  }) {
    if (all.length === 0) return;
    if (!isStated('x-deprecated-since') || !isStated('x-deprecated-sunset')) {
      const message = '`x-brownouts` needs `x-deprecated-since` and `x-deprecated-sunset` beside it';
      yield { message, at: 'name' };
    }
    if (afterSunset === 'serve') {
      const message = '`x-brownouts` rehearses a removal; remove it, or `x-after-sunset: serve`';
      yield { message, at: 'name' };
    }
    for (const [index, series] of all.entries()) {
      for (const what of seriesFaults(series, { before: all[index - 1]?.from, sinceMs, sunsetMs }))
        yield { message: `\`x-brownouts[${index}]\` ${what}` };
    }
  },

  shown: ({ brownouts }) => ({
    brownouts: brownouts?.map(({ fromMs, everyMs, forMs }) => ({
      from: isoOf(fromMs),
      every: everyMs === undefined ? undefined : formatDuration(everyMs),
      for: formatDuration(forMs),
    })),
  }),
};

/** @param place the beginning of the series before, and the dates of the deprecation; epoch ms */
function* seriesFaults(
  {
    from,
    every,
    for: length,
  }: NonNullable<z.output<z.ZodObject<typeof brownoutsShape>>['x-brownouts']>[number],
  { before, sinceMs, sunsetMs }: Readonly<Record<'before' | 'sinceMs' | 'sunsetMs', number | undefined>>,
): Generator<string> {
  if (sinceMs !== undefined && from < sinceMs)
    yield 'begins before `x-deprecated-since`; announce the deprecation first';
  if (sunsetMs !== undefined && from >= sunsetMs)
    yield 'begins after `x-deprecated-sunset`, when the operation is removed';
  if (before !== undefined && from <= before)
    yield 'must begin later than the entry before; sort the entries by `from`';
  if (every !== undefined && length > every) yield 'has a `for` that is longer than its `every`';
}
