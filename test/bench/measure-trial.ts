/**
 * Measures what a trial costs Redis: `node test/bench/measure-trial.ts`. For each state of a key, the program prints the time of the script
 * for a decision, by Redis's own statistics, and the CPU time of Redis. It also prints both relative to a plan without a trial. The states
 * are measured in turn. The figures are means of the fastest tenth of the rounds, because other programs disturb a round.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { QuotaCall } from '../../gateway/quota/decide-key.ts';
import { alignLimits } from '../../gateway/quota/trial.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import type { Limits } from '../../gateway/shared/model.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { limitsOf } from '../support/limits-of.ts';
import { startRedis } from '../support/start-redis.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '150' } } });
const callsPerRound = 500;
const atOnce = 100;
const roomy = limitsOf({ perMinute: 1_000_000_000, perDay: 1_000_000_000 });
const full = limitsOf({ perMinute: 1_000_000_000, perDay: 1 });
const never = 1_000_000_000;
const bans = { after: never, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

/** A state of a key: the calls that bring the key into this state, and the measured call. */
interface State {
  readonly name: string;
  readonly before: readonly Call[];
  readonly call: Call;
}

type Call = Pick<QuotaCall, 'limits' | 'trial' | 'bans'>;

const tried = (limits: Limits, trial?: Limits): Call => ({ ...alignLimits(limits, trial), bans });
const banned = { ...tried(roomy, full), bans: { ...bans, after: 1, forMs: never, maxMs: never } };
const withSecond = limitsOf({ perSecond: 1_000_000_000, perMinute: 1_000_000_000, perDay: 1_000_000_000 });
const states: readonly State[] = [
  { name: 'no trial', before: [], call: tried(roomy) },
  { name: 'no trial, the plan refuses', before: [tried(full)], call: tried(full) },
  { name: 'the counts are equal', before: [], call: tried(roomy, roomy) },
  { name: 'the counts differ', before: [tried(roomy, full), tried(roomy, full)], call: tried(roomy, roomy) },
  { name: 'the trial refuses each request', before: [tried(roomy, full)], call: tried(roomy, full) },
  { name: 'the trial has banned the key', before: [banned, banned], call: banned },
  { name: 'the trial has a further window', before: [], call: tried(roomy, withSecond) },
  { name: 'the plan and the trial refuse', before: [tried(full, full)], call: tried(full, full) },
];

const server = await startRedis();
const redis = await connectRedis({ prefix: 'trial', place: { url: server.url } });
const windowsMs = freshWindows(Date.now());
// A call has one key, as in a Cluster.
const deps = {
  redis,
  windowsMs,
  deadlineMs: 20_000,
  patientDeadlineMs: 20_000,
  keysPerCallMax: 1,
  functionRetryMs: 10_000,
};
const store = createRedisQuotaStore(deps);
const pid = Number(/process_id:(\d+)/.exec(await redis.commands.info('server'))?.[1]);

const cpu = new Map<string, number[]>(states.map(({ name }) => [name, []]));
const script = new Map<string, number[]>(states.map(({ name }) => [name, []]));
for (let round = 0; round < Number(values.rounds); round++) {
  for (const { name, before, call } of states) {
    const keyId = `${round} ${name}`;
    for (const each of before) await store.decide([{ keyId, ...each, requests: 1, units: 1 }]);
    await redis.commands.config('RESETSTAT');
    const startNs = cpuNs();
    for (let sent = 0; sent < callsPerRound; sent += atOnce) {
      await store.decide(Array.from({ length: atOnce }, () => ({ keyId, ...call, requests: 1, units: 1 })));
    }
    cpu.get(name)?.push((cpuNs() - startNs) / callsPerRound / 1_000);
    script.get(name)?.push(scriptUs(await redis.commands.info('commandstats')));
  }
}
redis.close();
await server.stop();

console.log('| state of the key | script, µs | | CPU of Redis, µs | |\n|---|---|---|---|---|');
for (const { name } of states) {
  const [ofScript, ofCpu] = [script, cpu].map((figures) => {
    const [us, plainUs] = [figures.get(name) ?? [], figures.get('no trial') ?? []].map(fastest) as [
      number,
      number,
    ];
    return `${us.toFixed(1)} | ${(us / plainUs).toFixed(2)}`;
  });
  console.log(`| ${name} | ${ofScript} | ${ofCpu} |`);
}

/** The CPU time of Redis so far, without the time in which Redis waited for a CPU. */
function cpuNs(): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]);
}

function scriptUs(commandStats: string): number {
  const [, calls, us] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(commandStats) ?? [];
  return Number(us) / Number(calls);
}

function fastest(figures: readonly number[]): number {
  const fast = [...figures].sort((one, other) => one - other).slice(0, Math.ceil(figures.length / 10));
  return fast.reduce((sum, each) => sum + each, 0) / fast.length;
}
