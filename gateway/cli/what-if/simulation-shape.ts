import * as z from 'zod';
import type { Verdict } from '../../usage/simulate/verdict.ts';

const count = z.number();

const totals = {
  keys: count,
  offered: count,
  refusedNow: count,
  refusedThen: count,
  refusedThenMin: count,
  refusedThenMax: count,
  keysRefusedMore: count,
  keysRefusedLess: count,
  newlyLimitedKeys: count,
  freedKeys: count,
};

/** The response of `POST /simulate`, which `--json` prints whole. */
export const simulation = z.object({
  from: z.string(),
  to: z.string(),
  source: z.string(),
  reproduced: z.object({
    recordedRefusals: count,
    replayedRefusals: count,
    minutesThatDiffer: count,
    differences: z.array(
      z.object({
        at: z.string(),
        keys: count,
        of: z.array(z.string()),
        recordedRefusals: count,
        replayedRefusals: count,
        why: z.string().optional(),
      }),
    ),
  }),
  totals: z.object(totals),
  plans: z.array(z.object({ name: z.string(), ...totals })),
  keys: z.array(
    z.object({
      id: z.string(),
      plan: z.string(),
      offered: count,
      refusedNow: count,
      refusedThen: count,
      refusedThenMin: count.optional(),
      refusedThenMax: count.optional(),
      firstRefusedAt: z.string().optional(),
      censoredMinutes: count,
    }),
  ),
  moreKeys: count,
  activeKeys: count,
  examinedKeys: count,
  next: z.string().optional(),
});

export type SimulationPart = z.output<typeof simulation>;
/** All parts, merged. */
export type Simulation = Verdict &
  Pick<SimulationPart, 'from' | 'to' | 'source' | 'activeKeys' | 'examinedKeys'>;
