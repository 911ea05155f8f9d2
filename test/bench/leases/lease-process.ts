/**
 * A process of the experiment. For each phase that the parent sends, the process sends requests of one key at random times, and logs each
 * request to a file. The log is written synchronously, so it is complete even if the parent kills the process.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { createLimiter } from '../../../gateway/request/limit/limiter.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { createLeaseClient, type Decided, type KeyOfPhase } from './lease-client.ts';
import { monotonicUs, type PhaseDone, type PhaseOfProcess } from './phase.ts';
import { type SchemeName, schemes } from './schemes.ts';

const bans = { after: 1e9, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

const port = Number(process.argv[2]);
const redis = new Redis(port, '127.0.0.1');
redis.on('error', () => {}); // A failed call ends the process.
const limiter = createLimiter({
  redis: { url: `redis://127.0.0.1:${port}`, prefix: 'gateway', onFailure: 'refuse' },
  log: pino({ level: 'silent' }),
  nowMs: Date.now,
  planOf: () => undefined,
  // The processes wait for each other on few cores, and one process is stopped for a while. This wait must not count as an outage.
  bounds: { ...defaultBounds, storeDeadlineMs: 10_000, storeSilenceMaxMs: 10_000 },
});
process.on('disconnect', () => process.exit());
process.on('message', (phase: PhaseOfProcess) => {
  run(phase).then(
    (done) => process.send?.(done),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
await redis.ping();
process.send?.('ready');

async function run({ scheme, key, requestsPerSecond, startsUs, ms, logFile }: PhaseOfProcess) {
  const log = openSync(logFile, 'w');
  const client = clientOf(scheme, key);
  const decisions: Promise<void>[] = [];
  const endsUs = startsUs + ms * 1_000;
  const gapUs = () => (-Math.log(1 - Math.random()) / requestsPerSecond) * 1e6;
  for (let dueUs = startsUs + gapUs(); dueUs < endsUs; dueUs += gapUs()) {
    const waitMs = (dueUs - monotonicUs()) / 1_000;
    // At most one request begins in each turn of the event loop, as in a process of a large fleet. On a busy machine, several requests
    // would otherwise begin when the process gets the CPU.
    await new Promise<void>((resolve) => {
      if (waitMs > 0) setTimeout(resolve, waitMs);
      else setImmediate(resolve);
    });
    decisions.push(request(decisions.length));
  }
  await Promise.all(decisions);
  const done: PhaseDone = { unused: client.unused() };
  client.close();
  closeSync(log);
  return done;

  async function request(number: number): Promise<void> {
    const began = `${number} ${monotonicUs()} ${Math.floor(Date.now() / key.windowMs)}`;
    writeSync(log, `${began}\n`);
    const { kind, remaining, window } = await client.decide();
    writeSync(log, `${began} ${monotonicUs()} ${kind} ${remaining} ${window}\n`);
  }
}

function clientOf(name: SchemeName, key: KeyOfPhase) {
  const scheme = schemes[name];
  if (scheme !== 'gateway') return createLeaseClient(redis, scheme, key, String(process.pid));
  const window = key.windowMs === defaultBounds.windowsMs.second ? 'second' : 'day';
  const limits = [{ window, max: key.limit }] as const;
  const ofGateway = { id: key.id, plan: 'free', limits, disabled: false };
  return {
    async decide(): Promise<Decided> {
      const decision = await limiter.decide(ofGateway, { bans }, { units: 1 });
      const { kind } = decision;
      if (kind !== 'admitted' && kind !== 'refused' && kind !== 'banned') {
        throw new Error(`decided without Redis: ${kind}`);
      }
      const { remaining, resetMs } = decision.rateLimit.inForce;
      return { kind, remaining, window: Math.round(resetMs / key.windowMs) - 1 };
    },
    unused: () => 0,
    close: () => {},
  };
}
