import { Argument, type Command, InvalidArgumentError } from 'commander';
import { comparable, diffSettings, isEmpty } from '../../admin/settings/diff-settings.ts';
import { getPlanTrialWire, type PlanTrial } from '../../admin/wires/plans/figures.ts';
import { listPlansWire } from '../../admin/wires/plans/plans.ts';
import { editNotes } from '../../capabilities/lists/commands.ts';
import { restartNeeded } from '../../config/watch-settings.ts';
import type { QueryFor } from '../../shared/http/wire.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { AdminClient, Reply } from '../admin/admin-client.ts';
import { clientAfterFlush } from '../admin/flush-counts.ts';
import { type PeriodOptions, periodQuery } from '../admin/period.ts';
import { ofPlan, readKey } from '../admin/read-api.ts';
import {
  type Asking,
  clientOf,
  examples,
  fromHere,
  screenNow,
  show,
  wholeNumber,
  withGateway,
  withPeriod,
} from '../command.ts';
import { addLimitOptions, limitsOf, type StatedLimits } from '../keys/limit-options.ts';
import { CommandError } from '../output/command-error.ts';
import { print, printJson } from '../output/screen.ts';
import { createAskSimulation, type Simulation } from './ask-simulation.ts';
import { verdictDays, verdictsOf } from './diff-verdicts.ts';
import { diffLines } from './diff-view.ts';
import { type EditByField, editsBetween, type LimitEdits, laterEdits } from './edits-between.ts';
import { createProgress } from './progress.ts';
import { settingsInForce, settingsOfFile } from './settings-shown.ts';
import { simulationLines } from './simulation-view.ts';
import { trialLines, trialsLines } from './trial-view.ts';

/**
 * An option with this value removes a limit. The type `LimitEdits` uses null for this purpose, but commander treats null from an option's parser
 * as a missing value.
 */
const noLimit = 'none';

interface SimulateOptions extends Asking, PeriodOptions, StatedLimits<number | typeof noLimit> {
  readonly plan?: string;
  readonly key?: string;
  readonly group?: string;
  readonly days?: number;
  readonly limit: number;
}

interface TrialOptions extends Asking, PeriodOptions {
  readonly limit: number;
}

interface DiffOptions extends Asking {
  readonly against?: string;
}

/** Adds the commands that compare an edited configuration, simulate its limits, and show what the trial of a plan would have refused. */
export function addWhatIfCommands(program: Command): void {
  const simulate = withGateway(program.command('simulate'))
    .description(
      'replay the recorded requests under other limits: limits of a plan, of a key, or of an edited configuration (--config FILE)',
    )
    .option('--plan <name>', 'the plan to simulate with other limits')
    .option('--key <id>', 'the key to simulate with other limits');
  simulate.option('--group <name>', 'the group of operations whose limits are simulated');
  addLimitOptions(simulate, (window) => `requests per ${window}, or none`, limitOf);
  simulate.option('--days <count>', 'the number of days until now (default: the last 24 hours)', wholeNumber);
  withPeriod(simulate)
    .option('--limit <count>', 'the maximum number of keys', wholeNumber, 20)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples(
        'simulate --plan free --per-minute 30',
        'simulate --key acme --per-day none --days 7',
        'simulate --config config/edited.yaml',
      ),
    )
    .action(async (options: SimulateOptions, command: Command) => {
      const found = await runSimulation(options, command.getOptionValueSource('config') === 'cli');
      show(options, { json: found, body: found }, (body, screen) =>
        simulationLines(body, options.limit, screen),
      );
    });

  withGateway(program.command('diff'))
    .addArgument(new Argument('<file>', 'an edited configuration on this machine').argParser(fromHere))
    .description(
      'list the additions, removals and changes of an edit, and the keys that its limits would have affected; exit code 2 if the configurations differ',
    )
    .option('--against <file>', 'compare with this file and not with the gateway', fromHere)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples('diff config/edited.yaml', 'diff config/edited.yaml --against config/production.yaml'),
    )
    .action(async (file: string, options: DiffOptions) => {
      const { diff, names, notes } = await compare(file, options);
      const differs = !isEmpty(diff);
      const { before, after, lists, ...others } = diff;
      if (options.json) printJson({ differs, before, after, ...lists, ...others });
      else if (differs) print(diffLines(diff, notes, names, screenNow()));
      else print([`${names[1]} has the same settings as ${names[0]}.`]);
      if (differs) process.exitCode = 2;
    });

  withPeriod(withGateway(program.command('trial')))
    .argument('[plan]', 'the name of a plan with a trial (default: all plans with a trial)')
    .description(
      'show what the trial of a plan would have refused: the requests, the share by window, and the keys',
    )
    .option('--limit <count>', 'the maximum number of keys of a plan, up to 10,000', wholeNumber, 20)
    .option('--json', 'print the response of the admin API as one JSON document')
    .addHelpText('after', examples('trial', 'trial free --from -7d'))
    .action(async (plan: string | undefined, { from, to, limit, ...options }: TrialOptions) => {
      const client = await clientAfterFlush(options);
      // The gateway caches the figures until now without `to`, and the cached figures may be from before the flush.
      const period = periodQuery({ from, to: to ?? isoOf(Date.now()) }, Date.now());
      const query = { ...period, limit };
      if (plan === undefined) show(options, await readTrials(client, query), trialsLines);
      else show(options, await readTrial(client, plan, query), trialLines);
    });
}

type TrialQuery = QueryFor<typeof getPlanTrialWire>;

function readTrial(client: AdminClient, name: string, query: TrialQuery): Promise<Reply<PlanTrial>> {
  return ofPlan(client, name, () => client.ask(getPlanTrialWire, { params: { name }, query }));
}

/** Reads the trials of all plans. */
async function readTrials(client: AdminClient, query: TrialQuery) {
  const { plans } = (await client.ask(listPlansWire)).body;
  const replies: Reply<PlanTrial>[] = [];
  for (const { name, trial } of plans)
    if (trial !== undefined) replies.push(await readTrial(client, name, query));
  return { body: replies.map(({ body }) => body), json: { trials: replies.map(({ json }) => json) } };
}

const dayMs = 86_400_000;

/**
 * Compares a configuration file with another file, or with the settings of a gateway. When the command compares with a gateway, the gateway
 * also simulates the edited limits.
 */
async function compare(file: string, { against, ...options }: DiffOptions) {
  const after = await settingsOfFile(file, process.env);
  const client = against === undefined ? clientOf({ ...options, config: options.config ?? file }) : undefined;
  const before = client ? await settingsInForce(client) : await settingsOfFile(against ?? '', process.env);
  const nowMs = Date.now();
  const from = isoOf(nowMs - verdictDays * dayMs);
  const ask = client && createAskSimulation(client, progress);
  const verdicts =
    ask === undefined
      ? []
      : await verdictsOf(
          editsBetween(before, after),
          (edits) => ask({ from, ...edits }),
          (name) => before.settings.keys.filter(({ plan }) => plan === name).length,
          laterEdits(before, after, nowMs),
        );
  const edit = { before: before.settings.plans, after: after.settings.plans, nowMs };
  const notes = (await Promise.all(editNotes.map((load) => load()))).map((notesOn) =>
    notesOn({ ...edit, verdicts: client && verdicts }),
  );
  const diff = {
    before: before.settings.version,
    after: after.settings.version,
    ...diffSettings(before.json, after.json),
    needsRestart: restartNeeded(comparable(before.json), comparable(after.json)),
    verdicts,
    ...Object.assign({}, ...notes.map(({ members }) => members)),
  };
  return { diff, names: [before.name, after.name] as const, notes: notes.flatMap((one) => one.notes) };
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
  const client = clientOf(options);
  const edits: LimitEdits = isEditedFile
    ? editsBetween(await settingsInForce(client), await settingsOfFile(options.config ?? '', process.env))
    : (stated ?? {});
  if (isEditedFile && Object.keys(edits).length === 0) {
    throw new CommandError(
      `${options.config} has the same limits as the gateway: "tollgate diff" shows the other differences.`,
    );
  }
  try {
    return await createAskSimulation(client, progress)({ ...period, ...edits });
  } catch (error) {
    // If the key does not exist, this call throws an error that suggests a similar id.
    if (options.key !== undefined) await readKey(client, options.key);
    throw error;
  }
}

function progress() {
  return createProgress(process.stderr, process.env);
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

function limitOf(text: string): number | typeof noLimit {
  if (text === noLimit) return noLimit;
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, or none.');
  return Number(text);
}
