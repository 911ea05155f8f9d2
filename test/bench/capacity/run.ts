import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readOptionsOrEnd } from '../../support/command-options.ts';
import { findProgram } from '../find-program.ts';
import { describeMachine } from '../machine.ts';
import { pinBenchmark } from '../pin.ts';
import { endAllProcesses, killAllProcesses } from '../processes.ts';
import { measureDirectCpu } from './calibrate.ts';
import { compareFleet } from './compare-fleet.ts';
import { type Inputs, readCommand, usage } from './inputs.ts';
import { measureFleet } from './measure-fleet.ts';
import { measureGateway } from './measure-gateway.ts';
import { measureHeap } from './measure-heap.ts';
import { measureRedis } from './measure-redis.ts';
import { planFleet } from './plan.ts';
import {
  comparisonTable,
  costsTable,
  describeDifferences,
  describeInputs,
  tablesOf,
  toMarkdown,
  toText,
  variantsTable,
} from './print.ts';
import {
  type BenchmarkPart,
  type Measured,
  scaleCpu,
  type UnitCosts,
  unitCostsOf,
  whyUnusable,
} from './unit-costs.ts';
import { wallsOf } from './walls.ts';

const results = fileURLToPath(new URL('../results', import.meta.url));
/** The costs on the page `capacity.md`. A machine without its own measurements also uses these costs. */
const shipped = fileURLToPath(new URL('unit-costs.json', import.meta.url));
const page = fileURLToPath(new URL('../capacity.md', import.meta.url));
const [pageBegins, pageEnds] = [
  '<!-- from here on written by `npm run capacity -- --page` -->',
  '<!-- to here -->',
];

/** A report of the benchmark, or the results of `--measure`. */
interface Basis {
  readonly report: BenchmarkPart;
  readonly measured: Measured;
}

/** @throws Error when there are no figures */
function readBasis(resultsFile: string | undefined): Basis {
  const [newestMeasured] = newest(/^capacity-.*\.json$/);
  const report = resultsFile === undefined ? newestReport() : readReport(resultsFile);
  if (newestMeasured !== undefined && report !== undefined) {
    return { report, measured: readJson(newestMeasured) };
  }
  const kept: Basis = readJson(shipped);
  console.error(
    `test/bench/results has no ${report === undefined ? 'valid report (npm run bench)' : 'unit costs (npm run capacity -- --measure)'}, so the costs of test/bench/capacity.md are used`,
  );
  return { ...kept, ...(report && { report }) };
}

function readReport(file: string): BenchmarkPart {
  const report: BenchmarkPart = readJson(file);
  const why = whyUnusable(report);
  if (why !== undefined) throw new Error(`${file} cannot be used: ${why}`);
  return report;
}

/** The newest report that has all necessary figures. */
function newestReport(): BenchmarkPart | undefined {
  return newest(/^\d{4}-.*\.json$/)
    .map((file) => readJson<BenchmarkPart>(file))
    .find((report) => whyUnusable(report) === undefined);
}

/** Files with results, the newest first. */
function newest(name: RegExp): readonly string[] {
  if (!existsSync(results)) return [];
  const names = readdirSync(results).filter((file) => name.test(file));
  return names
    .toSorted()
    .reverse()
    .map((file) => join(results, file));
}

function readJson<T>(file: string): T {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch (error) {
    throw new Error(`${file} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

async function measure(quick: boolean): Promise<void> {
  if (findProgram('wrk') === undefined) throw new Error('wrk is missing: apt-get install wrk');
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-capacity-'));
  process.on('exit', () => {
    killAllProcesses();
    rmSync(dir, { recursive: true, force: true });
  });
  const [started, machine] = [new Date().toISOString(), describeMachine()];
  const heap = await measureHeap(quick ? 10_000 : 100_000);
  const { costs: redis, directCpu: directCpuOfRedis } = await measureRedis(quick);
  // The measurement of Redis alone uses all cores. The later measurements reserve one core for the gateways.
  const { subjectCpus } = pinBenchmark();
  const { directCpu, curve, costs } = await measureGateway({ dir, quick, subjectCpus });
  mkdirSync(results, { recursive: true });
  const file = join(results, `capacity-${started.replaceAll(':', '-').slice(0, 19)}.json`);
  const write = (fleet: Measured['fleet']) => {
    const all = { ...scaleCpu({ ...heap, ...redis }, directCpu / directCpuOfRedis), ...costs };
    // The curve shows how the number of calls for one key grows with the number of connections. The model does not use the curve.
    const measured: Measured & { curve: unknown } = {
      started,
      machine,
      quick,
      directCpu,
      costs: all,
      fleet,
      curve,
    };
    writeFileSync(file, `${JSON.stringify(measured, null, 2)}\n`);
  };
  write([]);
  const directCpuBeforeFleet = await measureDirectCpu();
  const fleet = await measureFleet({ dir, quick, subjectCpus });
  const directCpuOfFleet = (directCpuBeforeFleet + (await measureDirectCpu())) / 2;
  write(fleet.map((run) => ({ ...run, measured: scaleCpu(run.measured, directCpu / directCpuOfFleet) })));
  console.log(`written to ${file}`);
  await endAllProcesses();
}

/** The options of the command on the page `capacity.md`. */
const asked = ['--requests', '1e6', '--keys', '1e6', '--replicas', '2'];

/** Writes the figures into `capacity.md`. Also writes `unit-costs.json`, for machines without their own measurements. */
function writePage(basis: Basis): void {
  const { report, measured } = basis;
  const costs = unitCostsOf(report, measured);
  const then = unitCostsOf(report, measured, 'measurement');
  const variants = [[], ['--per-key', '4'], ['--skew', '0'], ['--skew', '0', '--per-key', '4']];
  const answers = variants.map((more) => {
    const command = readCommand([...asked, ...more]);
    if (command.kind !== 'print') throw new Error('no inputs');
    return {
      title: more.length === 0 ? 'as above' : `\`${more.join(' ')}\``,
      ...answer(command.inputs, costs),
    };
  });
  const [first] = answers;
  const runs = measured.fleet.map((run) => ({ run, figures: compareFleet(run, then.values) }));
  const generated = [
    '## A million keys, a million requests a second',
    `\`npm run capacity -- ${asked.join(' ')}\`: ${first?.sentence}`,
    ...(first?.tables ?? []).map((table) => toMarkdown(table, '###')),
    toMarkdown(variantsTable(answers), '###'),
    toMarkdown(comparisonTable(runs)),
    describeDifferences(runs.flatMap(({ figures }) => figures)),
    toMarkdown(costsTable(costs)),
    `${costs.machine}.`,
  ];
  const text = readFileSync(page, 'utf8');
  const [head, rest] = text.split(pageBegins);
  const tail = rest?.split(pageEnds)[1];
  if (tail === undefined) throw new Error(`${page} has no place for figures: ${pageBegins} … ${pageEnds}`);
  writeFileSync(page, `${head}${pageBegins}\n\n${generated.join('\n\n')}\n\n${pageEnds}${tail}`);
  const { started, problems, machine } = report;
  const scenarios = report.scenarios
    .filter(({ name }) => name === 'hot-key' || name === 'flood')
    .map(({ name, subjects }) => ({
      name,
      subjects: subjects
        .filter((subject) => subject.name === 'tollgate' || subject.name === 'backend direct')
        .map(({ name, samples }) => ({
          name,
          samples: samples.map(({ cpuSecondsPer10k, redisCallsPerRequest }) => ({
            cpuSecondsPer10k,
            redisCallsPerRequest,
          })),
        })),
    }));
  const kept: Basis = { report: { started, problems, machine, scenarios }, measured };
  writeFileSync(shipped, `${JSON.stringify(kept, null, 2)}\n`);
  console.log(`written: ${page} and ${shipped}`);
}

function answer(inputs: Inputs, { values }: UnitCosts) {
  const plan = planFleet(inputs, values);
  const walls = wallsOf(inputs, values);
  return { plan, walls, sentence: describeInputs(inputs, plan), tables: tablesOf(plan, walls) };
}

async function print(inputs: Inputs, { report, measured }: Basis, isCalibrated: boolean): Promise<void> {
  const costs = unitCostsOf(report, measured, isCalibrated ? await directCpuHere() : 'benchmark');
  const { sentence, tables } = answer(inputs, costs);
  console.log([sentence, ...tables.map(toText), `${costs.machine}.`].join('\n\n'));
}

/** If this measurement fails, the plan uses the costs of another machine, and the last line of the output states this. */
async function directCpuHere(): Promise<number | 'benchmark'> {
  try {
    return await measureDirectCpu();
  } catch (error) {
    console.error(`Not calibrated for this machine: ${error instanceof Error ? error.message : error}`);
    return 'benchmark';
  }
}

const command = readOptionsOrEnd(usage, () => readCommand(process.argv.slice(2)));
try {
  if (command.kind === 'print') await print(command.inputs, readBasis(command.results), command.isCalibrated);
  else if (command.kind === 'measure') await measure(command.quick);
  else writePage(readBasis(command.results));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  await endAllProcesses();
  process.exit(1);
}
process.exit(0);
