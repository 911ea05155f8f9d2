import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type Fleet, startFleetHere } from '../support/fleet.ts';
import { makeKey, plans, type RunningGateway, startGateway } from '../support/gateway-process.ts';
import { patientGateway } from '../support/tuning.ts';

const { token, entry } = makeToken();
const key = makeKey({ plan: 'business' });
const tuning = { bounds: patientGateway };

let fleet: Fleet<RunningGateway>;
/** The first gateway runs in the process of the test. The second gateway is a process that a test kills. */
let gateways: readonly [RunningGateway, RunningGateway];
let pids: readonly number[];
beforeAll(async () => {
  fleet = await startFleetHere({
    starts: [{ tuning }],
    config: { keys: [key.entry], admin: { host: '127.0.0.1', port: 0, tokens: [entry] } },
  });
  const [here] = fleet.gateways;
  const redis = { url: fleet.redis.url, prefix: fleet.prefix };
  const other = await startGateway({ ...fleet.config, redis }, { tuning });
  if (here === undefined) throw new Error('a gateway was started');
  gateways = [other, here];
  pids = [process.pid, other.child.pid ?? 0];
});
afterAll(async () => {
  await gateways[0].stop('SIGKILL');
  await fleet.stop();
});

function ask({ adminUrl }: RunningGateway, path: string) {
  return askAdmin(Number(new URL(adminUrl).port), `/api/v1${path}`, { token });
}

async function pidsSeenBy(gateway: RunningGateway) {
  const { processes } = (await ask(gateway, '/state')).body;
  return processes.map(({ pid }: { pid: number }) => pid).sort();
}

describe('two processes on one Redis', () => {
  it('are both in the state from either process, with their activity', async () => {
    for (const gateway of gateways) await expect.poll(() => pidsSeenBy(gateway)).toEqual(pids.toSorted());
    const [busy, idle] = gateways;
    const headers = { authorization: `Bearer ${key.secret}` };
    for (let request = 0; request < 20; request++) await fetch(`${busy.baseUrl}/pets`, { headers });
    const busySeenByIdle = async () => {
      const { body } = await ask(idle, '/state');
      expect(body).toMatchObject({
        environment: 'test',
        isComplete: true,
        store: { kind: 'redis', available: true },
      });
      const known = body.processes.find(({ pid }: { pid: number }) => pid === pids[1]);
      return known.outcomes['2xx'] > 0 && known.p99Ms > 0 && known.upstreamP99Ms > 0 && known;
    };
    await expect.poll(busySeenByIdle).toMatchObject({
      phase: 'serving',
      configVersion: expect.stringMatching(/^[0-9a-f]{12}$/),
      requestsPerSecond: expect.any(Number),
      failuresPerSecond: 0,
      store: { kind: 'redis', available: true },
      targets: 1,
      healthyTargets: 1,
    });
  });

  it('give the same upstreams, with the view of each process on the target', async () => {
    for (const gateway of gateways) {
      const upstreams = async () => (await ask(gateway, '/upstreams')).body.upstreams;
      // A paused process is briefly missing from the list.
      await expect.poll(upstreams).toEqual([
        expect.objectContaining({
          name: 'default',
          timeouts: expect.objectContaining({ connectMs: 2_000 }),
          targets: [
            expect.objectContaining({ healthy: true, processes: [expect.anything(), expect.anything()] }),
          ],
        }),
      ]);
    }
  });

  it('record a reload, and a failed one', async () => {
    const [second, first] = gateways;
    await fleet.editConfig({ plans: { ...plans, free: { perMinute: 61 } } });
    await expect
      .poll(async () => (await ask(first, '/plans')).body.plans[0].windows)
      .toEqual([{ name: 'minute', limit: 61 }]);
    await fleet.editConfig({ plans: { ...plans, free: { perMinute: -1 } } });
    const actions = async () =>
      (await ask(second, '/changes')).body.changes.map((one: { action: string }) => one.action);
    await expect.poll(actions).toEqual(['reload_failed', 'reload']);
    await expect.poll(async () => (await ask(first, '/state')).body.config.lastError).toContain('perMinute');
  });

  it('report within the expiry that one was killed, and still respond when Redis is away', async () => {
    const [killed, survivor] = gateways;
    await killed.stop('SIGKILL');
    await expect.poll(() => pidsSeenBy(survivor)).toEqual([process.pid]);
    expect((await ask(survivor, '/state')).body.isComplete).toBe(true);
    await fleet.redis.kill();
    await expect.poll(async () => (await ask(survivor, '/state')).body.isComplete).toBe(false);
    const { status, body } = await ask(survivor, '/state');
    expect([status, body.store.available, body.processes.length]).toEqual([200, false, 1]);
    expect((await ask(survivor, '/changes')).body.changes.length).toBeGreaterThan(0);
    for (const path of ['/settings', '/plans', '/upstreams', '/openapi.json']) {
      expect([path, (await ask(survivor, path)).status]).toEqual([path, 200]);
    }
  });
});
