import { writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { measureWebhooks } from '../capabilities/webhooks/faults/webhooks.ts';
import { readOptionsOrEnd } from '../support/command-options.ts';
import { type RedisForm, redisForms } from '../support/redis-forms.ts';
import { floods, measureAdminFlood } from './admin-flood.ts';
import { measureAdminLoad, worsts } from './admin-load.ts';
import { measureBan } from './ban.ts';
import { measureClusterFailover, measureLostReply, measureMigration } from './cluster.ts';
import { measureConcurrency } from './concurrency.ts';
import { measureContracts } from './contracts.ts';
import { type Loss, measureDeadShard } from './dead-shard.ts';
import { measureDrain, measureRollingRestart } from './drain.ts';
import { type Exactness, measureExactness } from './exactness.ts';
import { type Greed, greeds, measureGreedyKeys } from './greedy-keys.ts';
import { measureGreedyTunnels } from './greedy-tunnels.ts';
import { measureIsolatedMaster } from './isolated-master.ts';
import { measureKills } from './kills.ts';
import { measureManyKeys } from './many-keys.ts';
import { type Fault, measureOutage } from './outage.ts';
import { measureGrant, measurePlanEdit } from './plan-edit.ts';
import { type FormName, formNames } from './relayed-redis.ts';
import { measureRevocation } from './revocation.ts';
import { measureSlowClients } from './slow-clients.ts';
import { measureSoak } from './soak.ts';
import { measureStrayOctets } from './stray-octets.ts';
import { measureTargetFault, type TargetFault } from './targets.ts';
import { measureUnknownSecrets } from './unknown-secrets.ts';
import { measureUsage } from './usage.ts';
import { measureWorkerKills } from './workers.ts';

/** The result of one measurement, for its rows in the list of faults. */
interface Finding {
  readonly figure: string;
  /** Whether the gateway met its requirements. Times are printed but not judged. */
  readonly holds: boolean;
}

interface Measurement {
  readonly rows: string;
  readonly what: string;
  readonly measure: () => Promise<Finding>;
}

const day = 86_400_000_000;

/** The time in which the failure of a target may cause errors. Later requests must succeed. */
const healthIntervalMs = 1_000;

const rowsOfFault: Readonly<Record<Fault, string>> = {
  killed: '5, 7',
  'failed over': '7',
  'failed over by Sentinel': '7, 36',
  frozen: '6, 7',
  slow: '5, 6',
  full: '8',
  'read-only': '8',
};

const measurements: readonly Measurement[] = [
  {
    rows: '1, 3',
    what: 'one key, three processes with clocks ±90 s, across a calendar minute',
    measure: async () =>
      judgeExactness(
        await measureExactness({
          requests: 70_000,
          clients: 48,
          limits: { perMinute: 5_000, perDay: 1_000_000_000 },
          startBeforeEndMs: 8_000,
        }),
      ),
  },
  {
    rows: '1, 3',
    what: 'one key, three processes with clocks ±90 s, windows of one second',
    measure: () => exactInWindowsOfASecond(),
  },
  {
    rows: '1, 3',
    what: 'one key, three processes with clocks ±90 s, until the limit of the day is exhausted',
    measure: async () =>
      judgeExactness(
        await measureExactness({
          requests: 20_000,
          clients: 48,
          limits: { perMinute: 500, perDay: 900 },
          windowsMs: { minute: 1_000, day: day },
          startBeforeEndMs: 300,
        }),
      ),
  },
  {
    rows: '1, 18',
    what: 'a daily limit edited under load on three processes: 1,000, then 3,000, then 500',
    async measure() {
      const found = await measurePlanEdit({ first: 1_000, raised: 3_000, lowered: 500 });
      const { admitted, followedMs, failures } = found;
      return {
        figure: `The processes admitted ${admitted.first}, ${admitted.raised} and ${admitted.lowered} requests, and had applied the changes after ${ms(followedMs.raised)} and ${ms(followedMs.lowered)}.`,
        holds:
          admitted.first === 1_000 &&
          admitted.raised === 3_000 &&
          admitted.lowered === 3_000 &&
          found.answered200 === 3_000 &&
          failures.length === 0,
      };
    },
  },
  {
    rows: '38',
    what: 'a grant under load on three processes: 3,000 instead of 1,000 a day, then removed; then a grant of 4,000 until it expires',
    async measure() {
      const limits = { plan: 1_000, granted: 3_000, again: 4_000 };
      const { admitted, followedMs, failures, answered200 } = await measureGrant(limits);
      return {
        figure: `The processes admitted ${admitted.join(', ')} requests, and had applied the changes after ${ms(followedMs.granted)} and ${ms(followedMs.taken)}.`,
        holds:
          admitted.join() === '1000,3000,3000,4000,4000' && answered200 === 4_000 && failures.length === 0,
      };
    },
  },
  {
    rows: '4',
    what: 'gateways killed while they decide',
    async measure() {
      const { kills, responses, keys, keysWithoutExpiry } = await measureKills({ rounds: 15 });
      return {
        figure: `${keysWithoutExpiry.length === 0 ? `All ${keys}` : `${keys - keysWithoutExpiry.length} of ${keys}`} Redis keys had an expiry after ${kills} kills and ${responses} responses.`,
        holds: keysWithoutExpiry.length === 0,
      };
    },
  },
  {
    rows: '41',
    what: 'three processes with one key of `concurrent: 10`, each killed in turn while it serves requests; then Redis killed and restarted',
    async measure() {
      const { openAtKill, usableAfterMs, refused, most } = await measureConcurrency({ kills: 3 });
      const slowestMs = Math.max(...usableAfterMs);
      return {
        figure: `The killed processes had ${openAtKill.join(', ')} requests in progress. The backend never had more than ${most.before} requests of the key at once, and had 10 again at most ${ms(slowestMs)} after a kill. ${refused} requests were refused. Without Redis, each process had at most ${most.ofOneWhileAway} requests in progress. After the return of Redis, ${most.admittedAfter} requests were admitted while more than 10 were in progress, and later at most ${most.after} were in progress.`,
        holds:
          Math.min(...openAtKill) > 0 &&
          slowestMs <= 35_000 &&
          most.before === 10 &&
          most.ofOneWhileAway === 10 &&
          most.admittedAfter === 0 &&
          most.after === 10,
      };
    },
  },
  {
    rows: '42',
    what: 'webhooks: the sender killed three times and Redis frozen for 10 s, while one receiver works, and others respond 500, hang, redirect or send 1 GB',
    async measure() {
      // Shorter pauses between retries than in production, so that the measurement ends soon.
      const tuning = { webhookRetryPauseMaxMs: 10_000 };
      const found = await measureWebhooks({ eventsPerRound: 200, kills: 3, frozenMs: 10_000, tuning });
      const { events, lost, repeated, broken, takeoverMs, slowestMs } = found;
      const sum = (counts: Readonly<Record<string, number>>) =>
        Object.values(counts).reduce((total, count) => total + count, 0);
      return {
        figure: `Of ${events} events, ${sum(lost)} did not reach each of the 5 receivers, and ${broken.length} had different bodies or a wrong signature. Receivers accepted ${sum(repeated)} deliveries again. After a kill, another process sent within ${takeoverMs.map(ms).join(', ')}. The working receiver got the first 200 events within ${ms(slowestMs)}, although the other receivers failed.`,
        holds:
          events === 1_203 && sum(lost) === 0 && broken.length === 0 && Math.max(...takeoverMs) <= 30_000,
      };
    },
  },
  ...redisForms.map(exactnessOn),
  ...formNames.flatMap((form) => [contractsOn(form), directoryOn(form), usageOn(form)]),
  {
    rows: '35',
    what: 'Redis Cluster: the slot of a key moves from server to server under load, also to a new server; three limiters',
    async measure() {
      const { requests, admitted, used, moves, local } = await measureMigration({
        limit: 30_000,
        requests: 90_000,
      });
      return {
        figure: `During ${moves} moves and ${requests} requests, ${Math.max(0, admitted - 30_000)} requests above the limit were admitted, and the limit would have allowed ${Math.max(0, 30_000 - admitted)} more requests. Redis counted ${used} requests, and ${local} requests were decided without Redis.`,
        holds: admitted === 30_000 && used === 30_000 && local === 0,
      };
    },
  },
  {
    rows: '35',
    what: 'Redis Cluster: a master killed between a script and its reply, then its replica promoted',
    async measure() {
      const { sent, counted, countedByDefault } = await measureLostReply();
      return {
        figure: `${sent} requests got no reply, and Redis had counted ${counted} of them. One request of a client that repeats commands was counted ${countedByDefault} times.`,
        holds: counted === sent && countedByDefault === 2,
      };
    },
  },
  {
    rows: '35',
    what: 'Redis Cluster: a master killed, and its replica promoted after a second; two limiters',
    async measure() {
      const { limit, admitted, used, backAfterMs } = await measureClusterFailover(400);
      const total = admitted.before + admitted.away + admitted.after;
      return {
        figure: `${total} requests were admitted with a limit of ${limit}, ${admitted.away} of them during the failover, and ${used} were counted afterwards. Redis was used again after ${ms(backAfterMs)}.`,
        holds: total === limit && used === limit,
      };
    },
  },
  ...(['killed', 'frozen'] as const).map(deadShard),
  {
    rows: '36',
    what: 'Redis under Sentinel: the master is cut off from Sentinels and replicas, but not from two limiters under load',
    async measure() {
      const found = await measureIsolatedMaster(3_000);
      const beyond = found.admitted - found.limit;
      return {
        figure: `Another master was announced after ${ms(found.announcedAfterMs)}, and every limiter was connected to it after ${ms(found.backAfterMs)}. The old master received writes for ${ms(found.wroteToOldForMs)} after the announcement. ${beyond} requests above the limit of ${found.limit} were admitted, and ${found.lost} were counted only by the old master.`,
        holds: beyond >= found.lost && beyond <= found.lost + found.left && found.used === found.limit,
      };
    },
  },
  ...(
    ['killed', 'failed over', 'failed over by Sentinel', 'frozen', 'slow', 'full', 'read-only'] as const
  ).map(outage),
  {
    rows: '9',
    what: 'SIGTERM under load, 40 kept-alive clients',
    async measure() {
      const found = await measureDrain({ requests: 10_000 });
      return {
        figure: `${found.failures.length} of ${found.responses} requests were dropped. The exit code was ${found.exitCode} after ${ms(found.endedAfterMs)}, including a grace period of 1,000 ms for load balancers.`,
        holds: found.failures.length === 0 && found.exitCode === 0 && found.idleSocketClosed,
      };
    },
  },
  {
    rows: '37',
    what: 'SIGTERM under load, 40 kept-alive clients, two workers',
    async measure() {
      const found = await measureDrain({ requests: 10_000, workers: 2 });
      return {
        figure: `${found.failures.length} of ${found.responses} requests were dropped. The exit code was ${found.exitCode} after ${ms(found.endedAfterMs)}.`,
        holds: found.failures.length === 0 && found.exitCode === 0 && found.idleSocketClosed,
      };
    },
  },
  {
    rows: '37',
    what: 'one of three workers killed under load, ten times',
    async measure() {
      const found = await measureWorkerKills({ workers: 3, kills: 10 });
      const { responses, statuses, failures, connectionsKilled, wentBack, untold } = found;
      return {
        figure: `${failures.length} of ${responses} requests failed, on ${connectionsKilled} connections of killed workers. No count decreased. ${untold} requests of killed workers had not been counted.`,
        holds:
          failures.length <= connectionsKilled && Object.keys(statuses).join() === '200' && wentBack === 0,
      };
    },
  },
  {
    rows: '10',
    what: 'rolling restart of three processes behind a balancer',
    async measure() {
      const { responses, failures, exitCodes } = await measureRollingRestart();
      return {
        figure: `${failures.length} of ${responses} requests failed. The exit codes were ${exitCodes.join(', ')}.`,
        holds: failures.length === 0 && exitCodes.every((code) => code === 0),
      };
    },
  },
  ...(['one dies', 'one hangs', 'one flaps', 'all gone'] as const).map((fault) => targets(fault)),
  ...([3, 8] as const).flatMap((processes) => [
    targets('one dies', processes),
    targets('one hangs', processes),
  ]),
  {
    rows: '22',
    what: '4,000 idle sockets, 100 slow headers, 100 slow bodies, 100 slow readers; default timeouts',
    async measure() {
      const found = await measureSlowClients({ idle: 4_000, slow: 100, goodRequests: 6_000 });
      const { baseline, besideSlow } = found.p99Ms;
      const { before, during, after } = found.descriptors;
      return {
        figure: `Well-behaved clients got ${statuses(found.good)}. The p99 of these clients changed from ${ms(baseline)} to ${ms(besideSlow)} (${(besideSlow / baseline).toFixed(2)}×), and the open descriptors from ${before} to ${during} and then to ${after}.`,
        holds: found.failures.length === 0 && Object.keys(found.good).join() === '200',
      };
    },
  },
  ...greeds.flatMap((greed) => [1, 8, 40].map((keys) => greedyKeys(greed, keys))),
  {
    rows: '22',
    what: '64 WebSockets of one key move as many octets as they can, in both directions; the baseline is the same load past the gateway',
    async measure() {
      const { good, failures, p50Ms, p99Ms, mebibytesPerSecond } = await measureGreedyTunnels({
        tunnels: 64,
        octets: 65_536,
        keys: 1,
        rounds: 3,
        halfMs: 3_000,
      });
      return {
        figure: `Another key got ${statuses(good)}. Its p50 went from ${ms(p50Ms.baseline)} to ${ms(p50Ms.beside)} (${(p50Ms.beside / p50Ms.baseline).toFixed(2)}×), and its p99 to ${(p99Ms.beside / p99Ms.baseline).toFixed(2)}×. The WebSockets transferred ${Math.round(mebibytesPerSecond)} MiB/s.`,
        holds: failures.length === 0 && Object.keys(good).join() === '200' && mebibytesPerSecond > 0,
      };
    },
  },
  {
    rows: '24, 25',
    what: 'a ban of 3 s, three processes',
    async measure() {
      const found = await measureBan();
      return {
        figure: `${found.admittedDuring} requests were admitted during the ban. The responses were ${found.lastBeforeEnd} just before the end of the ban, and ${found.atTheTime.join(' and ')} at the announced time. The first request was admitted ${ms(found.liftedAfterMs)} after the end. The next ban lasted ${found.nextSeconds} s.`,
        holds:
          found.admittedDuring === 0 &&
          found.lastBeforeEnd === 429 &&
          found.atTheTime.every((status) => status === 200),
      };
    },
  },
  {
    rows: '28',
    what: 'soak of 150 s with mixed traffic; the heap reaches its full size after about 75 s',
    async measure() {
      const { requests, failures, slopeBytesPerSecond, residentBytes, descriptors } = await measureSoak({
        seconds: 150,
      });
      return {
        figure: `${requests} requests were sent. Resident memory went from ${mib(residentBytes.middle)} to ${mib(residentBytes.end)} in the second half (${(slopeBytesPerSecond / 1024).toFixed(0)} KiB/s), and the open descriptors from ${descriptors.before} to ${descriptors.after}.`,
        holds: failures.length === 0 && descriptors.after <= descriptors.before + 10,
      };
    },
  },
  {
    rows: '29',
    what: 'octets after the end of the responses to one key, on connections that another key also uses',
    async measure() {
      const { requests, shared, crossed, others, failures } = await measureStrayOctets({ requests: 100_000 });
      return {
        figure: `${crossed.length} of ${requests} responses had octets of another request. ${shared} connections carried requests of both keys. The other key got ${statuses(others)}.`,
        holds: crossed.length === 0 && failures.length === 0 && shared > 0,
      };
    },
  },
  ...Object.keys(floods).map((flood) => adminFlood(flood as keyof typeof floods)),
  ...[1, 2].map(adminLoad),
  {
    rows: '34',
    what: '2,000 unknown secrets a second from 5,000 addresses, while a key of the directory is used',
    async measure() {
      const flood = { perSecond: 2_000, addresses: 5_000 };
      const found = await measureUnknownSecrets({ ...flood, goodRequests: 20_000 });
      return {
        figure: `Well-behaved clients got ${statuses(found.good)}. The flood of ${found.flood.perSecond.toFixed(0)} requests/s got ${statuses(found.flood.statuses)}.`,
        holds:
          found.failures.length === 0 &&
          Object.keys(found.good).join() === '200' &&
          Object.keys(found.flood.statuses).join() === '401',
      };
    },
  },
  {
    rows: '34',
    what: '1,000,000 keys in the directory, 1,000 of them used, compared with ten keys',
    async measure() {
      const ten = await measureManyKeys({ keys: 10, used: 10 });
      const million = await measureManyKeys({ keys: 1_000_000, used: 1_000 });
      const { started, afterRequests } = million.residentBytes;
      return {
        figure: `The process starts after ${ms(million.startMs)} (ten keys: ${ms(ten.startMs)}) with ${mib(started)} (ten keys: ${mib(ten.residentBytes.started)}), and takes ${mib(afterRequests)} after 1,000 keys were used. The slowest first request took ${ms(million.slowestFirstMs)}, and the first page of all keys took ${ms(million.listMs)}. Redis takes ${mib(million.redisBytes)}.`,
        holds: Object.keys({ ...ten.statuses, ...million.statuses }).join() === '200',
      };
    },
  },
  {
    rows: '34',
    what: 'one request with each of 300,000 keys of the directory, 64 at once',
    async measure() {
      const found = await measureManyKeys({ keys: 300_000, used: 300_000, atOnce: 64 });
      const { started, afterRequests } = found.residentBytes;
      return {
        figure: `The responses were ${statuses(found.statuses)}, at ${found.perSecond.toFixed(0)}/s. The resident memory of the process went from ${mib(started)} to ${mib(afterRequests)}.`,
        holds: Object.keys(found.statuses).join() === '200',
      };
    },
  },
];

function exactnessOn(form: RedisForm): Measurement {
  return {
    rows: '1, 3',
    what: `${redisAs(form.name)}: one key, three processes with clocks ±90 s, windows of one second`,
    measure: () => exactInWindowsOfASecond(form),
  };
}

/** The name of a form of Redis, for the description of a fault. */
function redisAs(form: string): string {
  return form === 'Sentinel' ? 'Redis under Sentinel' : `Redis as ${form}`;
}

function contractsOn(form: FormName): Measurement {
  return {
    rows: '1, 31, 34',
    what: `${redisAs(form)}: the contract tests of the stores, and the same tests with limiters that contain a deliberate mistake`,
    async measure() {
      const { held, mutants, caught, failed } = await measureContracts(form);
      return {
        figure: `The contract tests passed: ${held.contract} for the counts, ${held.usage} for the usage record, ${held['keys/directory']} for the key directory, and ${held.fleet} for the lists of processes and changes. The tests rejected ${caught} of ${mutants} limiters with a mistake.`,
        holds: failed.length === 0 && mutants > 0 && Object.values(held).every((count) => count > 0),
      };
    },
  };
}

function directoryOn(form: FormName): Measurement {
  return {
    rows: '34',
    what: `${redisAs(form)}: a key of the directory revoked 20 times on three processes with delayed and cut connections`,
    async measure() {
      const found = await measureRevocation({ form, times: 20 });
      return {
        figure: `While the key was revoked, Redis admitted ${found.admittedShared} requests of the key, and processes without Redis admitted ${found.admittedAlone} requests. The other ${found.refused} requests were refused. Redis decided ${found.othersShared} requests of another key.`,
        holds: found.admittedShared === 0 && found.failures.length === 0 && found.refused > 0,
      };
    },
  };
}

function usageOn(form: FormName): Measurement {
  return {
    rows: '31',
    what: `${redisAs(form)}: the usage of 12 keys recorded by two processes with delayed and cut connections`,
    async measure() {
      const requests = 12_000;
      const found = await measureUsage({ form, requests });
      return {
        figure: `The responses were ${statuses(found.statuses)}, and connections were cut ${found.cuts} times. The two processes report ${found.recorded.join(' and ')} recorded requests.`,
        holds: found.failures.length === 0 && found.recorded.every((count) => count === requests),
      };
    },
  };
}

/** @param form by default one server */
async function exactInWindowsOfASecond(form?: RedisForm) {
  return judgeExactness(
    await measureExactness({
      requests: 40_000,
      clients: 48,
      limits: { perMinute: 500, perDay: 1_000_000_000 },
      windowsMs: { minute: 1_000, day: day },
      startBeforeEndMs: 300,
      ...(form && { form }),
    }),
  );
}

function deadShard(loss: Loss): Measurement {
  return {
    rows: '35',
    what: `Redis Cluster: one of three servers ${loss} under load, without a replica, for 5 s`,
    async measure() {
      const found = await measureDeadShard(loss, { holdMs: 5_000 });
      const { shared = 0, local = 0 } = found.othersDecidedBy;
      return {
        figure: `Keys of the other servers got ${statuses(found.others)}. During the fault, Redis decided ${shared} requests of keys of the other servers, and ${local} were decided locally. Keys of the lost server got ${statuses(found.lost)}, and ${found.usedAfter} of the ${found.admittedAway} locally admitted requests were written back. The slowest response took ${ms(found.slowestMs)}. \`/readyz\` returned ${found.ready.map(({ httpStatus }, index) => `${httpStatus} with \`${index === 0 ? 'local' : 'refuse'}\``).join(' and ')}. The server was used again after ${ms(found.backAfterMs)}.`,
        holds:
          found.failures.length === 0 &&
          Object.keys(found.others).join() === '200' &&
          Object.keys(found.lost).join() === '200' &&
          // A decision may take longer than 50 ms on a busy machine.
          local <= shared / 100 &&
          found.ready.every(
            ({ httpStatus, reasons }) => httpStatus === 200 && reasons.join().includes(found.name),
          ) &&
          found.refusing.join() === '503,200' &&
          found.usedAfter === found.admittedAway &&
          found.slowestMs < 1_000,
      };
    },
  };
}

function judgeExactness(found: Exactness): Finding {
  const { responses, admitted, over, under, sameRemaining, windows, longestUsed, failures, perSecond } =
    found;
  return {
    figure: `Of ${responses} requests (${perSecond.toFixed(0)}/s) in ${windows.length} windows, ${admitted} were admitted. ${over} were above the limit, and ${sameRemaining} had the same \`remaining\` as another request. The windows that refused requests had ${under} units of their limits left. Redis counted ${longestUsed}.`,
    holds: over + under + sameRemaining + failures.length === 0 && admitted === longestUsed,
  };
}

function outage(fault: Fault): Measurement {
  return {
    rows: rowsOfFault[fault],
    what: `Redis ${fault} under load, two processes with \`local\` and one with \`refuse\``,
    async measure() {
      const found = await measureOutage(fault, { holdMs: 5_000 });
      const survived = fault === 'killed' ? 0 : found.admittedBefore;
      const atMost = found.limit * 2 + found.admittedBefore;
      return {
        figure: `The processes with \`local\` sent ${statuses(found.local)}, and the process with \`refuse\` sent ${statuses(found.refusing)}. The p99 of a decision was ${ms(found.p99WithRedisMs)} with Redis, and ${ms(found.p99AfterBreakerMs)} without it. The slowest decision before the breaker opened took ${ms(found.slowestBeforeBreakerMs)}. Redis was used again after ${ms(found.backAfterMs)}. ${found.admittedBefore + found.admittedAway} requests were admitted with a limit of ${found.limit}, and Redis counted ${found.dayUsedAfter} of them afterwards.`,
        holds:
          found.failures.length === 0 &&
          Object.keys(found.local).join() === '200' &&
          found.badRefusals === 0 &&
          found.admittedBefore + found.admittedAway <= atMost &&
          found.dayUsedAfter === survived + found.admittedAway &&
          found.admittedAfter === found.restAfter &&
          found.keysWithoutExpiry.length === 0,
      };
    },
  };
}

function adminFlood(flood: keyof typeof floods): Measurement {
  return {
    rows: '33',
    what: `the admin listener: 100 clients of one address ${flood}, while another client uses a key`,
    async measure() {
      const found = await measureAdminFlood({ flood, clients: 100, goodRequests: 4_000 });
      const { p50Ms, flood: sent, operators } = found;
      const { here, elsewhere } = operators;
      const outcomes = [here, elsewhere].flatMap((figures) => Object.keys(figures.outcomes));
      return {
        figure: `The median response time of the key's requests changed from ${ms(p50Ms.baseline)} to ${ms(p50Ms.beside)} (${(p50Ms.beside / p50Ms.baseline).toFixed(2)}×). The ${sent.connections} connections of the flood got ${sent.perSecond === 0 ? 'no response' : `${sent.perSecond.toFixed(0)} responses/s: ${statuses(sent.statuses)}`}. An operator's slowest response took ${ms(here.slowestMs)} at the address of the flood, and ${ms(elsewhere.slowestMs)} at another address.`,
        holds:
          found.failures.length === 0 &&
          Object.keys(found.good).join() === '200' &&
          outcomes.every((outcome) => outcome === '200') &&
          sent.perSecond <= 1.1 * defaultBounds.adminTurnsPerSecondMax,
      };
    },
  };
}

function adminLoad(workers: number): Measurement {
  return {
    rows: '39',
    what: `a read token repeats the most expensive requests on 30 connections; workers: ${workers}, 100,000 keys, 1,000 of them with a record of eight days`,
    async measure() {
      const found = await measureAdminLoad({
        worst: Object.keys(worsts) as (keyof typeof worsts)[],
        keys: 100_000,
        recorded: 1_000,
        connections: 30,
        goodRequests: 1_000,
        workers,
      });
      const figures = found.map(({ worst, p50Ms, operatorMs, revokedMs: { byApi, inFile } }) => {
        const ratio = (p50Ms.beside / p50Ms.alone).toFixed(2);
        return `${worst} ${ratio}×, ${ms(operatorMs)}, ${ms(byApi)}, ${ms(inFile)}`;
      });
      const most = Math.max(...found.map(({ residentBytes }) => residentBytes));
      return {
        figure: `For each kind of request, the p50 of a key, another operator's slowest response, and the time of a revocation by the API and in the keys file: ${figures.join('; ')}. The memory was at most ${mib(most)}.`,
        holds: found.every(
          ({ failures, operatorStatuses }) =>
            failures.length === 0 && operatorStatuses.every((status) => status === 200),
        ),
      };
    },
  };
}

function greedyKeys(greed: Greed, keys: number): Measurement {
  // A larger number of clients that never read would exhaust the kernel's memory for sockets.
  const clients = greed === 'reads no response' ? 260 : 260 * Math.min(keys, 4);
  return {
    rows: '22',
    what: `${keys} greedy ${keys === 1 ? 'key' : 'keys'}, ${clients} clients of four addresses at each of two processes: each client ${greed}`,
    async measure() {
      const found = await measureGreedyKeys({ greed, keys, clients, goodRequests: 6_000 });
      const { p99Ms, slowestMs } = found;
      return {
        figure: `Other keys got ${statuses(found.good)}. The p99 of these keys changed from ${ms(p99Ms.baseline)} to ${ms(p99Ms.beside)} (${(p99Ms.beside / p99Ms.baseline).toFixed(2)}×), and the slowest response from ${ms(slowestMs.baseline)} to ${ms(slowestMs.beside)}. Greedy requests held at most ${found.heldAtBackend} of 512 connections to the backend. The access lines of greedy requests have status ${Object.keys(
          found.greedyEnds,
        )
          .map((end) => end.replace(/ (.*)/, ' and fault `$1`'))
          .join(', ')}.`,
        holds:
          found.failures.length === 0 &&
          Object.keys(found.good).join() === '200' &&
          found.heldAtBackend < 512 &&
          Object.keys(found.greedyEnds).every((end) => end.endsWith(' client')),
      };
    },
  };
}

function targets(fault: TargetFault, processes = 1): Measurement {
  const through = processes === 1 ? '' : ` through ${processes} processes on one Redis`;
  return {
    rows: fault === 'all gone' ? '11, 12' : '11',
    what: `POSTs under load to three targets${through}: ${fault}`,
    async measure() {
      const found = await measureTargetFault(fault, { totalTimeoutMs: 250, processes });
      // With a timeout of 250 ms, a healthy target may also fail a request while the machine is busy.
      const { checksPerSecond, lastHungAfterMs, lastFailedBeganAfterMs: beganMs } = found;
      const failedUntilMs = lastHungAfterMs ?? beganMs;
      const hung =
        lastHungAfterMs === undefined
          ? ''
          : ` The hanging target received its last request ${ms(lastHungAfterMs)} after the fault.`;
      const checks =
        checksPerSecond === undefined
          ? ''
          : `Each target got ${checksPerSecond.toFixed(1)} health checks a second before the fault. `;
      return {
        figure: `${checks}${found.duplicated} POSTs were duplicated. The responses were ${statuses(found.statuses)}. The last failing request began ${ms(beganMs)} after the fault, and got its response ${ms(found.lastErrorAfterMs)} after the fault.${hung} Later requests got ${statuses(found.afterwards)}.`,
        holds:
          found.duplicated === 0 &&
          found.failures.length === 0 &&
          found.badRefusals === 0 &&
          found.running &&
          (checksPerSecond ?? 0) <= 100 &&
          (fault === 'all gone' || failedUntilMs <= healthIntervalMs) &&
          Object.keys(found.afterwards).join() === '201',
      };
    },
  };
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
}

function mib(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

function statuses(counts: Record<number, number>): string {
  return Object.entries(counts)
    .map(([status, count]) => `${status} (${count} times)`)
    .join(', ');
}

/**
 * Measures all faults, or only the faults whose description contains `only`. Prints the table. If all faults were
 * measured, also writes the table to the file.
 */
async function run(only: string | undefined): Promise<void> {
  const chosen = measurements.filter(({ what }) => only === undefined || what.includes(only));
  const lines = ['| rows | fault | figure | holds |', '|---|---|---|---|'];
  for (const { rows, what, measure } of chosen) {
    console.log(`… ${what}`);
    const finding = await measure().catch((error: unknown) => ({ figure: String(error), holds: false }));
    if (!finding.holds) process.exitCode = 1;
    lines.push(`| ${rows} | ${what} | ${finding.figure} | ${finding.holds ? 'yes' : '**no**'} |`);
    console.log(lines.at(-1));
  }
  const machine = `${availableParallelism()} × ${cpus()[0]?.model}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`;
  const head = `${machine}. \`200 (12000 times)\` means 12,000 responses with status 200.`;
  const text = `# Measured by \`npm run faults\`\n\n${head}\n\n${lines.join('\n')}\n`;
  console.log(`\n${text}`);
  if (only === undefined) await writeFile(new URL('figures.md', import.meta.url), text);
}

const usage = `npm run faults -- [--only TEXT]
  --only TEXT   only the faults whose description contains this text; figures.md stays unchanged`;

/** @throws Error that names the wrong option */
function readOnly(): string | undefined {
  const { only } = parseArgs({ options: { only: { type: 'string' } } }).values;
  if (only !== undefined && !measurements.some(({ what }) => what.includes(only))) {
    throw new Error(`--only: no fault has ${JSON.stringify(only)} in its description`);
  }
  return only;
}

await run(readOptionsOrEnd(usage, readOnly));
