import { type Bounds, defaultBounds } from '../../gateway/timeouts-and-sizes.ts';

/** The bounds that ship, but for those that a test sets. */
export function tunedBounds(tuning: Partial<Bounds>): Bounds {
  return { ...defaultBounds, ...tuning };
}
