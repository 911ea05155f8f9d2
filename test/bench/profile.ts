import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCredentials } from './credentials.ts';
import { pinBenchmark } from './pin.ts';
import { endAllProcesses, endProcess, killAllProcesses } from './processes.ts';
import { startRedis } from './redis.ts';
import { scenarios, spendFloodKey, takeSample, warmUp } from './scenarios.ts';
import { type CpuProfile, selfTimes } from './self-times.ts';
import { startBackend } from './subjects/direct.ts';
import { startTollgate } from './subjects/tollgate.ts';

/**
 * Shows which code of the gateway takes CPU time in one scenario: `node test/bench/profile.ts [SCENARIO]`, by default `hot-key`. Sampling
 * increases the CPU time by about a tenth.
 */
async function profile(name: string, dir: string): Promise<void> {
  const scenario = scenarios.find((candidate) => candidate.name === name);
  if (scenario === undefined) throw new Error(`one of: ${scenarios.map((each) => each.name).join(', ')}`);
  const { subjectCpus } = pinBenchmark();
  const credentials = makeCredentials(1_000, dir);
  const redis = await startRedis(dir);
  const backend = await startBackend({ dir, name: 'backend' });
  const gateway = await startTollgate(
    { dir, backendPort: backend.port, redisPort: redis.port, credentials, subjectCpus },
    { nodeOptions: ['--cpu-prof', `--cpu-prof-dir=${dir}`] },
  );
  await spendFloodKey(gateway.origin, credentials);
  const load = {
    scenario,
    subject: gateway,
    redis,
    credentials,
    where: name,
    noteProblems: (where: string, problems: readonly string[]) => {
      if (problems.length > 0) console.error(`INVALID: ${where}: ${problems.join('; ')}`);
    },
  };
  await warmUp({ ...load, seconds: 2 });
  const { cpuSecondsPer10k } = await takeSample({ ...load, seconds: 8 });
  redis.close();
  await endProcess(gateway.pid);

  // Threads that load a configuration also write profiles. The largest profile belongs to the thread that serves requests.
  const texts = readdirSync(dir)
    .filter((file) => file.endsWith('.cpuprofile'))
    .map((file) => readFileSync(join(dir, file), 'utf8'))
    .toSorted((a, b) => b.length - a.length);
  if (texts[0] === undefined) throw new Error('the gateway left no profile');
  const { byFile, byFunction } = selfTimes(JSON.parse(texts[0]) as CpuProfile);
  console.log(`${name}: ${cpuSecondsPer10k.toFixed(2)} CPU seconds per 10,000 requests`);
  console.log('\nshare of self time by file, then by function\n');
  for (const rows of [byFile.slice(0, 30), byFunction.slice(0, 60)]) {
    for (const { place, share } of rows) console.log(`${(share * 100).toFixed(1).padStart(5)} %  ${place}`);
    console.log('');
  }
}

const dir = mkdtempSync(join(tmpdir(), 'tollgate-profile-'));
process.on('exit', () => {
  killAllProcesses();
  rmSync(dir, { recursive: true, force: true });
});
process.once('SIGINT', () => process.exit(130));
await profile(process.argv[2] ?? 'hot-key', dir);
await endAllProcesses();
