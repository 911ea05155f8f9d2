import { expect, it, onTestFinished } from 'vitest';
import { type FleetOptions, readiness, startFleet, startFleetHere } from '../support/fleet.ts';
import type { RunningGateway } from '../support/gateway-process.ts';
import { startRecordingBackend } from '../support/recording-backend.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** Waits for a second in which the target gets at least or at most this number of health checks. */
async function checksInSecond(backend: { healthChecks: number }, is: (checks: number) => boolean) {
  let [checks, sinceMs] = [backend.healthChecks, performance.now()];
  await until('the expected number of health checks in a second', () => {
    const nowMs = performance.now();
    if (nowMs - sinceMs < 1_000) return false;
    const perSecond = ((backend.healthChecks - checks) * 1_000) / (nowMs - sinceMs);
    [checks, sinceMs] = [backend.healthChecks, nowMs];
    return is(perSecond);
  });
}

const isHealthy = async (gateway: RunningGateway) =>
  (await readiness(gateway)).body.upstreams.default?.targets[0]?.healthy;

async function startWith<Member extends RunningGateway>(
  start: (options: FleetOptions) => Promise<{
    readonly gateways: readonly Member[];
    readonly redis: { kill(): Promise<void> };
    stop(): Promise<void>;
  }>,
  count: number,
  bounds: NonNullable<NonNullable<FleetOptions['starts'][number]['tuning']>['bounds']>,
) {
  const backend = await startRecordingBackend();
  onTestFinished(() => backend.close());
  const fleet = await start({
    starts: Array(count).fill({ tuning: { bounds: { ...patientStore, ...bounds } } }),
    config: { upstream: { url: backend.url, health: '/healthz' } },
  });
  onTestFinished(() => fleet.stop());
  return { backend, ...fleet };
}

it('three gateways together check a target less often than one gateway alone, and each checks alone without Redis', async () => {
  // A gateway alone would check the target at most fifty times a second, and three gateways share ten checks a second.
  const bounds = { healthPauseMs: 20, healthTimeoutMs: 20_000, healthExchangeDeadlineMs: 5_000 };
  const { backend, gateways, redis } = await startWith(startFleetHere, 3, bounds);
  await checksInSecond(backend, (checks) => checks > 0 && checks <= 20);
  backend.health = 503;
  await expect.poll(() => Promise.all(gateways.map(isHealthy))).toEqual(Array(3).fill(false));
  backend.health = 200;
  await expect.poll(() => Promise.all(gateways.map(isHealthy))).toEqual(Array(3).fill(true));
  await redis.kill();
  await checksInSecond(backend, (checks) => checks >= 40);
});

it('eight gateways check a target about ten times a second, and all notice when it hangs and when it recovers', {
  tags: 'full',
}, async () => {
  const { backend, gateways } = await startWith(startFleet, 8, {});
  await checksInSecond(backend, (checks) => checks >= 4 && checks <= 20);
  backend.health = undefined;
  await expect.poll(() => Promise.all(gateways.map(isHealthy))).toEqual(Array(8).fill(false));
  backend.health = 200;
  await expect.poll(() => Promise.all(gateways.map(isHealthy))).toEqual(Array(8).fill(true));
});
