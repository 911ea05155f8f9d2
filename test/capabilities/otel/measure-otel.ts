import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeCredentials } from '../../bench/credentials.ts';
import { residentBytes } from '../../bench/measure-cpu.ts';
import { pinBenchmark } from '../../bench/pin.ts';
import { endAllProcesses } from '../../bench/processes.ts';
import { startRedis } from '../../bench/redis.ts';
import { runWrk } from '../../bench/run-wrk.ts';
import { hotKey, takeSample, warmUp } from '../../bench/scenarios.ts';
import { ratioOf, ratioOfMedians, type Spread } from '../../bench/statistics.ts';
import { startBackend } from '../../bench/subjects/direct.ts';
import { startTollgate } from '../../bench/subjects/tollgate.ts';
import { freePort } from '../../support/free-port.ts';

/**
 * Measures what traces cost: gateways with and without `otel` get the same load in turns.
 *
 *     node test/capabilities/otel/measure-otel.ts [--rounds 9] [--seconds 5]
 *
 * The CPU time of a request at several shares, divided by the CPU time without `otel`; and beside a dead and a hanging collector also the p99
 * under a steady load, and the memory after each round.
 */
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '9' }, seconds: { type: 'string', default: '5' } },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

/** Far below what the gateway can serve. */
const steady = { connections: 32, pauseMs: 20 };

const dir = mkdtempSync(join(tmpdir(), 'tollgate-otel-'));
const sinks: ChildProcess[] = [];

async function startSink(kind: 'take' | 'hang'): Promise<number> {
  const sink = fork(new URL('./sink-process.ts', import.meta.url), [kind]);
  sinks.push(sink);
  const [{ port }] = await once(sink, 'message');
  return port;
}

async function measure(): Promise<void> {
  const { subjectCpus } = pinBenchmark();
  const credentials = makeCredentials(100, dir);
  const redis = await startRedis(dir);
  const backend = await startBackend({ dir, name: 'backend' });
  const stage = { dir, backendPort: backend.port, redisPort: redis.port, credentials, subjectCpus };
  const [sink, hanging, dead] = [await startSink('take'), await startSink('hang'), await freePort()];
  const otel = (port: number, sample: string) =>
    `otel: { url: "http://127.0.0.1:${port}", sample: ${sample} }`;
  const kinds: Readonly<Record<string, string>> = {
    off: '',
    // The control shows how far two equal gateways differ on this machine.
    'off again': '',
    '1 %': otel(sink, '1 %'),
    '100 %': otel(sink, '100 %'),
    'dead, 100 %': otel(dead, '100 %'),
    'hanging, 100 %': otel(hanging, '100 %'),
  };
  const common = { redis, credentials, noteProblems: note, where: 'otel' };
  const all = [];
  for (const [name, settings] of Object.entries(kinds)) {
    const subject = await startTollgate(stage, { name: name.replaceAll(/\W+/g, '-'), settings });
    await warmUp({ ...common, scenario: hotKey, subject, seconds: Math.max(5, seconds) });
    all.push({ name, subject, cpu: [] as number[], p99: [] as number[], rss: [] as number[] });
  }
  for (let round = 0; round < rounds; round++) {
    // The order changes, so that no gateway always follows the same one.
    const turn = round % all.length;
    for (const one of [...all.slice(turn), ...all.slice(0, turn)]) {
      const { subject } = one;
      const { cpuSecondsPer10k } = await takeSample({ ...common, scenario: hotKey, subject, seconds });
      const load = {
        ...hotKey,
        ...steady,
        url: `${subject.origin}/v1/pets`,
        seconds,
        mode: 'measure',
      } as const;
      const { p99Us } = await runWrk({ ...load, secretsFile: credentials.hotFile });
      one.cpu.push(cpuSecondsPer10k);
      one.p99.push(p99Us);
      one.rss.push(residentBytes(subject.pid) / 1_048_576);
    }
    console.log(`round ${round + 1} of ${rounds}`);
  }
  const [off] = all;
  for (const { name, cpu, p99, rss } of all) {
    const ratio = shown(ratioOf(cpu, off?.cpu ?? []));
    const median = cpu.toSorted((a, b) => a - b)[Math.floor(cpu.length / 2)] ?? Number.NaN;
    console.log(
      `${name.padEnd(15)} CPU ${(median * 100).toFixed(1)} µs, ${ratio}; p99 ${shown(ratioOfMedians(p99, off?.p99 ?? []))}; MiB ${rss.map((one) => one.toFixed(0)).join(' ')}`,
    );
  }
}

function shown(ratio: Spread | undefined): string {
  return ratio === undefined
    ? '–'
    : `${ratio.median.toFixed(3)}× (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})`;
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
