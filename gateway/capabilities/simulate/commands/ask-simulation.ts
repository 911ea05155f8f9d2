import type * as z from 'zod';
import type { AdminClient } from '../../../cli/admin/admin-client.ts';
import { flushCounts } from '../../../cli/admin/read/flush-counts.ts';
import type { PeriodOptions } from '../../../cli/command.ts';
import type { Progress } from '../../../cli/output/progress.ts';
import { simulateWire, type simulationShown } from '../operators/wires.ts';
import { merge, type Verdict } from '../replay/verdict.ts';
import type { LimitEdits } from './edits-between.ts';

/** The result of a simulation, merged from all of its parts. */
export type Simulation = Verdict &
  Pick<
    z.output<typeof simulationShown>,
    | 'from'
    | 'to'
    | 'minutesSinceAt'
    | 'source'
    | 'activeKeys'
    | 'examinedKeys'
    | 'notReplayed'
    | 'hasGroups'
    | 'missing'
  >;

export type AskedSimulation = LimitEdits & PeriodOptions;

/** The number of keys in each part of a simulation is limited. The merged simulation has all keys. */
const everything = { keysListed: Number.POSITIVE_INFINITY, differencesListed: 1_000 };

/**
 * Makes the function with which a command requests its simulations. The processes of the fleet send their counts once, before the first
 * simulation, so that the command waits at most once for a process that does not send them. The function throws a CommandError.
 */
export function createAskSimulation(
  client: Pick<AdminClient, 'ask'>,
  progressOf: () => Progress,
): (asked: AskedSimulation) => Promise<Simulation> {
  let flushed: Promise<void> | undefined;
  return async (asked) => {
    const progress = progressOf();
    flushed ??= flushCounts(client);
    await flushed;
    return askParts(client, asked, progress);
  };
}

/** Requests a simulation from the gateway, one part at a time, because the gateway limits the time of each part. */
async function askParts(
  client: Pick<AdminClient, 'ask'>,
  asked: AskedSimulation,
  progress: Progress,
): Promise<Simulation> {
  const ask = async (body: object) => (await client.ask(simulateWire, { body })).body;
  const { next: second, ...first } = await ask(asked);
  let all: Simulation = first;
  progress.show(all.examinedKeys, all.activeKeys);
  for (let after = second; after !== undefined; ) {
    // All parts need the same period, so later parts use the period of the first part.
    const { next, ...found } = await ask({ ...asked, from: all.from, to: all.to, after });
    all = {
      ...all,
      ...merge(all, found, everything),
      examinedKeys: all.examinedKeys + found.examinedKeys,
      ...notReplayedIn(all, found),
      ...((all.hasGroups || found.hasGroups) && { hasGroups: true as const }),
    };
    progress.show(all.examinedKeys, all.activeKeys);
    after = next;
  }
  progress.end();
  return all;
}

/** Merges the groups of two parts. A group with requests in both parts has the requests of both. */
function notReplayedIn(one: Pick<Simulation, 'notReplayed'>, other: Pick<Simulation, 'notReplayed'>) {
  const all = [...(one.notReplayed ?? []), ...(other.notReplayed ?? [])];
  const groups = Map.groupBy(all, ({ plan, key, group }) => JSON.stringify([plan, key, group]));
  const notReplayed = [...groups.values()].flatMap((parts) => {
    const requests = parts.reduce((sum, part) => sum + part.requests, 0);
    return parts.slice(0, 1).map((first) => ({ ...first, requests }));
  });
  return notReplayed.length === 0 ? {} : { notReplayed };
}
