import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { makeCredentials } from '../../bench/credentials.ts';
import { residentBytes } from '../../bench/measure-cpu.ts';
import { pinBenchmark } from '../../bench/pin.ts';
import { endAllProcesses, endProcess } from '../../bench/processes.ts';
import { startRedis } from '../../bench/redis.ts';
import { runWrk } from '../../bench/run-wrk.ts';
import { hotKey, takeSample, warmUp } from '../../bench/scenarios.ts';
import { ratioOf, ratioOfMedians, spreadOf } from '../../bench/statistics.ts';
import { startBackend } from '../../bench/subjects/direct.ts';
import { type StartedTollgate, startTollgate } from '../../bench/subjects/tollgate.ts';
import { freePort } from '../../support/free-port.ts';

/**
 * Measures what traces cost. One gateway gets the same load again and again, and an edit of its configuration changes `otel` before each load.
 * Two processes of one program differ by up to 10 % in their CPU time and by a third in their p99, so no figure compares two processes.
 *
 *     node test/capabilities/otel/measure-otel.ts cpu [--starts 3] [--rounds 12] [--seconds 2]
 *     node test/capabilities/otel/measure-otel.ts p99 [--starts 3] [--rounds 8] [--seconds 5]
 *
 * `cpu`: the CPU time of a request at several shares, divided by the CPU time without `otel` in the same round. `p99`: the p99 under a steady
 * load beside a collector that takes all, a dead and a hanging one, divided in the same way, and the largest memory. Each start is a new
 * gateway.
 */
const { values, positionals } = parseArgs({
  options: { starts: { type: 'string' }, rounds: { type: 'string' }, seconds: { type: 'string' } },
  allowPositionals: true,
});
const isCpu = positionals[0] !== 'p99';
const starts = Number(values.starts ?? 3);
const rounds = Number(values.rounds ?? (isCpu ? 12 : 8));
const seconds = Number(values.seconds ?? (isCpu ? 2 : 5));

/** Far below what the gateway can serve. */
const steady = { connections: 8, pauseMs: 5 };
const reloadTimeoutMs = 10_000;

const dir = mkdtempSync(join(tmpdir(), 'tollgate-otel-'));
const sinks: ChildProcess[] = [];

async function startSink(kind: 'take' | 'hang'): Promise<number> {
  const sink = fork(new URL('./sink-process.ts', import.meta.url), [kind]);
  sinks.push(sink);
  const [{ port }] = await once(sink, 'message');
  return port;
}

interface Taken {
  readonly name: string;
  readonly settings: string;
  /** The figure of each round. */
  readonly figures: number[];
  readonly mebibytes: number[];
}

async function measure(): Promise<void> {
  const { subjectCpus } = pinBenchmark();
  const credentials = makeCredentials(100, dir);
  const redis = await startRedis(dir);
  const backend = await startBackend({ dir, name: 'backend' });
  const stage = { dir, backendPort: backend.port, redisPort: redis.port, credentials, subjectCpus };
  const [sink, hanging, dead] = [await startSink('take'), await startSink('hang'), await freePort()];
  const otel = (port: number, sample: string) =>
    `otel: { url: "http://127.0.0.1:${port}", sample: ${sample} }\n`;
  const kinds: Readonly<Record<string, string>> = {
    off: '',
    ...(isCpu
      ? { '1 %': otel(sink, '1 %'), '100 %': otel(sink, '100 %') }
      : Object.fromEntries(
          ['1 %', '100 %'].flatMap((share) => [
            [`taking, ${share}`, otel(sink, share)],
            [`dead, ${share}`, otel(dead, share)],
            [`hanging, ${share}`, otel(hanging, share)],
          ]),
        )),
    // The control shows how far two equal figures differ on this machine.
    'off again': '# again\n',
  };
  const common = { redis, credentials, noteProblems: note, where: 'otel' };
  const all = Object.entries(kinds).map(
    ([name, settings]): Taken => ({ name, settings, figures: [], mebibytes: [] }),
  );
  for (let start = 0; start < starts; start++) {
    const subject = await startTollgate(stage, { name: `start-${start}` });
    await warmUp({ ...common, scenario: hotKey, subject, seconds: 5 });
    for (let round = 0; round < rounds; round++) {
      // The order changes, so that no kind always follows the same one.
      const turn = round % all.length;
      for (const { settings, figures, mebibytes } of [...all.slice(turn), ...all.slice(0, turn)]) {
        await edit(subject, settings);
        await load(subject, 1);
        figures.push(await load(subject, seconds));
        mebibytes.push(residentBytes(subject.pid) / 1_048_576);
      }
      console.log(`start ${start + 1} of ${starts}, round ${round + 1} of ${rounds}`);
    }
    await endProcess(subject.pid);
  }
  for (const { name, figures, mebibytes } of all) {
    const { median, min, max } = spreadOf(figures);
    // A collector that is away is compared with one that takes the same share, too.
    const bases = all.filter((base) => base.name === 'off' || base.name === name.replace(/^\w+/, 'taking'));
    const ratios = bases.map((base) => {
      const [byMedians, byRounds] = [ratioOfMedians, ratioOf].map((of) => of(figures, base.figures)?.median);
      const byQuartiles = quartileOf(figures) / quartileOf(base.figures);
      return `against ${base.name}: ${[byMedians, byRounds, byQuartiles].map((ratio) => `${ratio?.toFixed(2)}×`).join(' ')}`;
    });
    console.log(
      `${name.padEnd(15)} median ${median.toFixed(1)} µs (${min.toFixed(1)} to ${max.toFixed(1)}); ${ratios.join('; ')}; at most ${Math.max(...mebibytes).toFixed(0)} MiB`,
    );
  }
  console.log('Ratios: of the medians, the median of the rounds, of the lower quartiles.');

  /** @returns µs of CPU time a request, or the p99 in µs */
  async function load(subject: StartedTollgate, loadSeconds: number): Promise<number> {
    if (isCpu) {
      const { cpuSecondsPer10k } = await takeSample({
        ...common,
        scenario: hotKey,
        subject,
        seconds: loadSeconds,
      });
      return cpuSecondsPer10k * 100;
    }
    const { p99Us } = await runWrk({
      ...hotKey,
      ...steady,
      url: `${subject.origin}/v1/pets`,
      seconds: loadSeconds,
      mode: 'measure',
      secretsFile: credentials.hotFile,
    });
    return p99Us;
  }
}

/** Other work on the machine only adds to a figure, so the lower quartile is steadier than the median. */
function quartileOf(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 4)] ?? Number.NaN;
}

/** Adds settings to the configuration, in place of those of the edit before, and waits until they are in force. */
async function edit({ adminOrigin, keysFile }: StartedTollgate, settings: string): Promise<void> {
  const file = join(dirname(keysFile), 'bench.yaml');
  const [core = ''] = readFileSync(file, 'utf8').split(marker);
  const before = await loadedAt(adminOrigin);
  writeFileSync(file, `${core}${marker}${settings}`);
  const deadlineMs = performance.now() + reloadTimeoutMs;
  while ((await loadedAt(adminOrigin)) === before) {
    if (performance.now() > deadlineMs) throw new Error(`the gateway has not loaded ${file}`);
    await sleep(20);
  }
}

const marker = '# otel\n';

async function loadedAt(adminOrigin: string): Promise<unknown> {
  const response = await fetch(`${adminOrigin}/readyz`);
  const { config } = (await response.json()) as { config: { loadedAt: string } };
  return config.loadedAt;
}

function note(where: string, found: readonly string[]): void {
  for (const problem of found) console.error(`INVALID: ${where}: ${problem}`);
}

try {
  await measure();
} finally {
  for (const sink of sinks) sink.disconnect();
  await endAllProcesses();
  rmSync(dir, { recursive: true, force: true });
}
process.exit();
