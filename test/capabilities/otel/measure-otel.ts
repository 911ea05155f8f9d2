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
import { spreadOf } from '../../bench/statistics.ts';
import { startBackend } from '../../bench/subjects/direct.ts';
import type { StartedSubject } from '../../bench/subjects/subject.ts';
import { startTollgate } from '../../bench/subjects/tollgate.ts';
import { freePort } from '../../support/free-port.ts';

/**
 * Measures what traces cost: gateways with and without `otel` get the same load in turns.
 *
 *     node test/capabilities/otel/measure-otel.ts cpu [--rounds 40] [--seconds 1]
 *     node test/capabilities/otel/measure-otel.ts p99 [--rounds 15] [--seconds 3]
 *
 * `cpu`: the CPU time of a request at several shares, divided by the CPU time without `otel`. Other work on the machine only adds to the CPU
 * time of a request, so the lower quartile of many short rounds is the steadiest figure. `p99`: the p99 under a steady load beside a dead
 * and a hanging collector, and the memory after each round.
 */
const { values, positionals } = parseArgs({
  options: { rounds: { type: 'string' }, seconds: { type: 'string' } },
  allowPositionals: true,
});
const isCpu = positionals[0] !== 'p99';
const rounds = Number(values.rounds ?? (isCpu ? 40 : 15));
const seconds = Number(values.seconds ?? (isCpu ? 1 : 3));

/** Far below what the gateway can serve. */
const steady = { connections: 8, pauseMs: 5 };

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
    ...(isCpu
      ? { '1 %': otel(sink, '1 %'), '100 %': otel(sink, '100 %') }
      : {
          'dead, 1 %': otel(dead, '1 %'),
          'hanging, 1 %': otel(hanging, '1 %'),
          'dead, 100 %': otel(dead, '100 %'),
          'hanging, 100 %': otel(hanging, '100 %'),
        }),
  };
  const common = { redis, credentials, noteProblems: note, where: 'otel' };
  const all = [];
  for (const [name, settings] of Object.entries(kinds)) {
    const subject = await startTollgate(stage, { name: name.replaceAll(/\W+/g, '-'), settings });
    await warmUp({ ...common, scenario: hotKey, subject, seconds: Math.max(5, seconds) });
    all.push({ name, subject, taken: [] as number[], rss: [] as number[] });
  }
  for (let round = 0; round < rounds; round++) {
    // The order changes, so that no gateway always follows the same one.
    const turn = round % all.length;
    for (const one of [...all.slice(turn), ...all.slice(0, turn)]) {
      const { subject } = one;
      one.taken.push(isCpu ? await cpuOf(subject) : await p99Of(subject));
      one.rss.push(residentBytes(subject.pid) / 1_048_576);
    }
    console.log(`round ${round + 1} of ${rounds}`);
  }
  const off = quartile(all[0]?.taken ?? []);
  for (const { name, taken, rss } of all) {
    const figure = quartile(taken);
    const spread = spreadOf(taken);
    console.log(
      `${name.padEnd(15)} ${figure.toFixed(1)} µs, ${(figure / off).toFixed(3)}×; median ${spread.median.toFixed(1)} (${spread.min.toFixed(1)} to ${spread.max.toFixed(1)}); MiB ${rss.map((one) => one.toFixed(0)).join(' ')}`,
    );
  }

  async function cpuOf(subject: StartedSubject): Promise<number> {
    const { cpuSecondsPer10k } = await takeSample({ ...common, scenario: hotKey, subject, seconds });
    return cpuSecondsPer10k * 100;
  }

  async function p99Of({ origin }: StartedSubject): Promise<number> {
    const load = { ...hotKey, ...steady, url: `${origin}/v1/pets`, seconds, mode: 'measure' } as const;
    const { p99Us } = await runWrk({ ...load, secretsFile: credentials.hotFile });
    return p99Us;
  }
}

function quartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN;
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
