import { type Bounds, defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/** The default bounds, with those that a test sets replaced. */
export function tunedBounds(tuning: Partial<Bounds>): Bounds {
  return { ...defaultBounds, ...tuning };
}
