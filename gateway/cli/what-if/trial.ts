import { getPlanTrialWire, type PlanTrial } from '../../admin/wires/plans/figures.ts';
import { listPlansWire } from '../../admin/wires/plans/plans.ts';
import type { QueryFor } from '../../shared/http/wire.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { AdminClient, Reply } from '../admin/admin-client.ts';
import { periodQuery } from '../admin/period.ts';
import { clientAfterFlush } from '../admin/read/flush-counts.ts';
import { ofPlan } from '../admin/read/read-plan.ts';
import type { Asking, PeriodOptions } from '../command.ts';
import { show } from '../output/show.ts';
import { trialLines, trialsLines } from './trial-view.ts';

export interface TrialOptions extends Asking, PeriodOptions {
  readonly limit: number;
}

export async function showTrial(
  plan: string | undefined,
  { from, to, limit, ...options }: TrialOptions,
): Promise<void> {
  const client = await clientAfterFlush(options);
  // The gateway caches the figures until now without `to`, and the cached figures may be from before the flush.
  const period = periodQuery({ from, to: to ?? isoOf(Date.now()) }, Date.now());
  const query = { ...period, limit };
  if (plan === undefined) show(options, await readTrials(client, query), trialsLines);
  else show(options, await readTrial(client, plan, query), trialLines);
}

type TrialQuery = QueryFor<typeof getPlanTrialWire>;

function readTrial(client: AdminClient, name: string, query: TrialQuery): Promise<Reply<PlanTrial>> {
  return ofPlan(client, name, () => client.ask(getPlanTrialWire, { params: { name }, query }));
}

async function readTrials(client: AdminClient, query: TrialQuery) {
  const { plans } = (await client.ask(listPlansWire)).body;
  const replies: Reply<PlanTrial>[] = [];
  for (const { name, trial } of plans)
    if (trial !== undefined) replies.push(await readTrial(client, name, query));
  return { body: replies.map(({ body }) => body), json: { trials: replies.map(({ json }) => json) } };
}
