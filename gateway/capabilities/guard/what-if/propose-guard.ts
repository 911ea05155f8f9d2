import { limitsAsYaml } from '../../../keys/limits/limit-fields.ts';
import type { Limits } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../../shared/words/figures.js';

const guardedMs = 10 * dayMs;
/** The proposed share exceeds the simulated share by a quarter, because traffic varies. */
const margin = 1.25;

/**
 * Proposes the member `guard` for an edit that makes limits of a plan smaller, as a line of the configuration: `guard: { before: { perMinute:
 * 60 }, refusedAtMost: 3 %, until: 2026-12-07 }`. The share is in whole percent.
 *
 * @param before the limits before the edit
 * @param share the share of requests, 0 to 1, that the new limits would have refused when they refused most
 * @param fromMs when the new limits begin to apply, epoch ms
 * @returns undefined if only a share of 100 % would exceed the simulated share, because such a guard would never revert the edit
 */
export function proposeGuard(before: Limits, share: number, fromMs: number): string | undefined {
  const percent = Math.max(Math.floor(share * 100) + 1, Math.ceil(share * 100 * margin));
  if (percent >= 100) return undefined;
  const until = isoOf(fromMs + guardedMs).slice(0, 10);
  return `guard: { before: ${limitsAsYaml(before)}, refusedAtMost: ${percent} %, until: ${until} }`;
}
