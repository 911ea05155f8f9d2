import { clientOf } from '../../../cli/admin/find-gateway.ts';
import { periodQuery } from '../../../cli/admin/period.ts';
import { readWhy } from '../../../cli/admin/read/read-key.ts';
import type { Asking, PeriodOptions } from '../../../cli/command.ts';
import { limitsOf, noLimit, type StatedLimits } from '../../../cli/keys/limit-options.ts';
import { CommandError } from '../../../cli/output/command-error.ts';
import { progressHere } from '../../../cli/output/progress.ts';
import { show } from '../../../cli/output/show.ts';
import { settingsInForce, settingsOfFile } from '../../../cli/what-if/settings-shown.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { dayMs } from '../../../shared/words/figures.js';
import { createAskSimulation, type Simulation } from './ask-simulation.ts';
import { type EditByField, editsBetween, type LimitEdits } from './edits-between.ts';
import { simulationLines } from './simulation-view.ts';

export interface SimulateOptions extends Asking, PeriodOptions, StatedLimits<number | typeof noLimit> {
  readonly plan?: string;
  readonly key?: string;
  readonly group?: string;
  readonly days?: number;
  readonly limit: number;
}

/** Replays the recorded requests under other limits. @param isEditedFile the limits are in the configuration of `--config` */
export async function simulate(options: SimulateOptions, isEditedFile: boolean): Promise<void> {
  const found = await runSimulation(options, isEditedFile);
  show(options, { json: found, body: found }, (body, screen) => simulationLines(body, options.limit, screen));
}

async function runSimulation(options: SimulateOptions, isEditedFile: boolean): Promise<Simulation> {
  const { days } = options;
  const nowMs = Date.now();
  if (days !== undefined && options.from !== undefined) {
    throw new CommandError('Which period? Give --days or --from, not both.');
  }
  const from = days === undefined ? options.from : isoOf(nowMs - days * dayMs);
  const period = periodQuery({ from, to: options.to }, nowMs);
  const stated = statedLimits(options);
  if (isEditedFile && stated !== undefined) {
    throw new CommandError('Which limits? Give --config FILE, or --plan or --key with limits, not both.');
  }
  const client = await clientOf(options);
  const edits: LimitEdits = isEditedFile
    ? editsBetween(await settingsInForce(client), await settingsOfFile(options.config ?? '', process.env))
    : (stated ?? {});
  if (isEditedFile && Object.keys(edits).length === 0) {
    throw new CommandError(
      `${options.config} has the same limits as the gateway: "tollgate diff" shows the other differences.`,
    );
  }
  try {
    return await createAskSimulation(client, progressHere)({ ...period, ...edits });
  } catch (error) {
    // If the key does not exist, this call throws an error that suggests a similar id.
    if (options.key !== undefined) await readWhy(client, options.key);
    throw error;
  }
}

/**
 * Returns the limits of the command line.
 *
 * @throws a CommandError if it names no plan or key, or both
 */
function statedLimits({ plan, key, group, ...options }: SimulateOptions): LimitEdits | undefined {
  const stated = limitsOf(options);
  if (stated === undefined && group !== undefined)
    throw new CommandError('Which limits has the group? Give a limit such as --per-minute 30.');
  if (stated === undefined && plan === undefined && key === undefined) return undefined;
  if (stated === undefined) throw new CommandError('Which limits? Give a limit such as --per-minute 30.');
  if ((plan === undefined) === (key === undefined)) {
    throw new CommandError('Whose limits? Give either --plan NAME or --key ID.');
  }
  const fields = Object.entries(stated).map(([field, max]) => [field, max === noLimit ? null : max]);
  const ofWindows = Object.fromEntries(fields);
  const edit: EditByField = group === undefined ? ofWindows : { groups: { [group]: ofWindows } };
  return plan === undefined ? { keys: { [key ?? '']: edit } } : { plans: { [plan]: edit } };
}
