import type * as z from 'zod';
import { simulationShown } from '../../admin/plans/simulations.ts';
import { merge, type Verdict } from '../../usage/simulate/verdict.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import type { PeriodOptions } from '../admin/period.ts';
import type { Tried } from './edits-between.ts';
import type { Progress } from './progress.ts';

/** All parts of a simulation, merged. */
export type Simulation = Verdict &
  Pick<z.output<typeof simulationShown>, 'from' | 'to' | 'source' | 'activeKeys' | 'examinedKeys'>;

export type AskedSimulation = Tried & PeriodOptions;

/** Each part of a simulation is bounded; the merged simulation has all keys. */
const everything = { keysListed: Number.POSITIVE_INFINITY, differencesListed: 1_000 };

/**
 * Asks the gateway for a simulation, part by part, because the gateway bounds the time of each part.
 *
 * @throws a CommandError
 */
export async function askSimulation(
  client: Pick<AdminClient, 'send'>,
  asked: AskedSimulation,
  progress: Progress,
): Promise<Simulation> {
  const ask = async (body: object) =>
    (await client.send({ method: 'POST', path: '/simulate', body }, simulationShown)).body;
  const { next: second, ...first } = await ask(asked);
  let all: Simulation = first;
  progress.show(all.examinedKeys, all.activeKeys);
  for (let after = second; after !== undefined; ) {
    // All parts need the same period, also where it ends now.
    const { next, ...found } = await ask({ ...asked, from: all.from, to: all.to, after });
    all = { ...all, ...merge(all, found, everything), examinedKeys: all.examinedKeys + found.examinedKeys };
    progress.show(all.examinedKeys, all.activeKeys);
    after = next;
  }
  progress.end();
  return all;
}
