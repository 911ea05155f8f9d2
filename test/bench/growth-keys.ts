import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeCredentials } from './credentials.ts';
import { residentBytes, treeCpuSeconds } from './measure-cpu.ts';
import { endProcess } from './processes.ts';
import type { BenchRedis } from './redis.ts';
import { manyKeys, type NoteProblems, type Sample, takeSample, warmUp } from './scenarios.ts';
import { spreadOf } from './statistics.ts';
import type { Stage } from './subjects/subject.ts';
import { keysYaml, type StartedTollgate, startTollgate } from './subjects/tollgate.ts';

/** Measures how the number of configured keys affects the gateway's start, memory, CPU time and reloads. */
export interface KeysFigures {
  readonly keys: number;
  readonly startMs: number;
  readonly residentBytes: number;
  /** The memory after the first edits and before any load. The first edits increase the memory even with few keys. */
  readonly residentAfterEditsBytes: number;
  /** The time from the saved edit until it takes effect, including the wait for the next check of the files. */
  readonly reloadMs: number;
  readonly reloadCpuSeconds: number;
  /** CPU samples under load. Rounds without reloads and rounds with reloads alternate. */
  readonly withoutReloads: readonly Sample[];
  readonly withReloads: readonly Sample[];
  /** The measured rate of reloads. Each edit waits until the previous edit has taken effect. */
  readonly reloadsPerSecond: number;
}

const reloadTimeoutMs = 10_000;
const reloadIntervalMs = 1_000;

export interface KeysOptions {
  readonly stage: Stage;
  readonly redis: BenchRedis;
  readonly noteProblems: NoteProblems;
  readonly warmUpSeconds: number;
  readonly quick: boolean;
}

/** Starts a new gateway for each number of keys. */
export async function measureKeys(options: KeysOptions): Promise<KeysFigures[]> {
  const figures: KeysFigures[] = [];
  for (const keys of options.quick ? [10, 10_000] : [10, 1_000, 10_000, 100_000]) {
    console.log(`keys: ${keys}`);
    figures.push(await measureKeyCount(keys, options));
  }
  return figures;
}

async function measureKeyCount(keys: number, options: KeysOptions): Promise<KeysFigures> {
  const { stage, quick } = options;
  const dir = join(stage.dir, `keys-${keys}`);
  mkdirSync(dir);
  const credentials = makeCredentials(keys, dir);
  const startedMs = performance.now();
  const gateway = await startTollgate({ ...stage, dir, credentials }, { name: `tollgate-${keys}` });
  const startMs = performance.now() - startedMs;
  const resident = residentBytes(gateway.pid);

  // The texts of both versions of the keys file are made before the measurement. An edit then only writes a file.
  const texts = ['one', 'other'].map((label) => keysYaml(credentials.all, label));
  let edits = 0;
  const edit = () => {
    const draft = `${gateway.keysFile}.draft`;
    writeFileSync(draft, texts[edits++ % texts.length] ?? '');
    renameSync(draft, gateway.keysFile);
  };

  const reloads: { ms: number; cpuSeconds: number }[] = [];
  for (let i = 0; i < (quick ? 2 : 5); i++) reloads.push(await measureReload(gateway, edit));
  const residentAfterEditsBytes = residentBytes(gateway.pid);

  const load = { ...options, scenario: manyKeys, subject: gateway, credentials, where: `${keys} keys` };
  await warmUp({ ...load, seconds: options.warmUpSeconds });
  const sample = () => takeSample({ ...load, seconds: quick ? 2 : 5 });
  const withoutReloads: Sample[] = [];
  const withReloads: Sample[] = [];
  const reloadsPerSecond: number[] = [];
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    withoutReloads.push(await sample());
    const reloading = keepReloading(gateway, edit);
    withReloads.push(await sample());
    reloadsPerSecond.push(await reloading.stop());
  }
  await endProcess(gateway.pid);

  return {
    keys,
    startMs,
    residentBytes: resident,
    residentAfterEditsBytes,
    reloadMs: spreadOf(reloads.map(({ ms }) => ms)).median,
    reloadCpuSeconds: spreadOf(reloads.map(({ cpuSeconds }) => cpuSeconds)).median,
    withoutReloads,
    withReloads,
    reloadsPerSecond: spreadOf(reloadsPerSecond).median,
  };
}

async function measureReload(gateway: StartedTollgate, edit: () => void) {
  const cpuBefore = treeCpuSeconds(gateway.pid).total;
  const editedMs = performance.now();
  await reload(gateway, edit);
  return { ms: performance.now() - editedMs, cpuSeconds: treeCpuSeconds(gateway.pid).total - cpuBefore };
}

/** Edits the keys file once a second, or less often if edits take effect more slowly. `stop` returns the rate. */
function keepReloading(gateway: StartedTollgate, edit: () => void) {
  const startedMs = performance.now();
  let reloads = 0;
  let isStopped = false;
  const loop = async () => {
    while (!isStopped) {
      await Promise.all([reload(gateway, edit), sleep(reloadIntervalMs)]);
      reloads += 1;
    }
  };
  const looping = loop();
  return {
    async stop(): Promise<number> {
      isStopped = true;
      await looping;
      return reloads / ((performance.now() - startedMs) / 1000);
    },
  };
}

async function reload(gateway: StartedTollgate, edit: () => void): Promise<void> {
  const before = await loadedAt(gateway);
  const deadlineMs = performance.now() + reloadTimeoutMs;
  edit();
  while ((await loadedAt(gateway)) === before) {
    if (performance.now() > deadlineMs) throw new Error('the gateway does not reload');
    await sleep(20);
  }
}

async function loadedAt({ adminOrigin }: StartedTollgate): Promise<string> {
  const response = await fetch(`${adminOrigin}/readyz`);
  const state = (await response.json()) as { config: { loadedAt: string } };
  return state.config.loadedAt;
}
