import type * as z from 'zod';
import { formatDuration, isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { DeprecationMember } from '../interfaces/configuration.ts';
import type { brownoutsShape } from './schema.ts';

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
