import { expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { directoryOf } from '../support/directory-of.ts';
import { readiness, startFleetHere } from '../support/fleet.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey } from '../support/gateway-process.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const token = makeToken('read', 'alice');

it('every process changes the limits of a plan at its date on the clock of Redis, and used requests still count', async () => {
  const key = makeKey({ id: 'in-yaml', plan: 'free' });
  const windowsMs = freshWindows(Date.now());
  const bounds = { ...patientStore, limitsReadsPerMinuteMax: 1_000_000 };
  const fleet = await startFleetHere({
    // The clocks of two processes are wrong. One of these clocks is already past the date when the test starts.
    starts: [90_000, 0, -90_000].map((clockSkewMs) => ({ tuning: { bounds, windowsMs, clockSkewMs } })),
    config: {
      plans: { free: { perMinute: 5 } },
      keys: { file: './keys.yaml', directory: true },
      limitsPath: '/limits',
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    },
    files: { 'keys.yaml': [key.entry] },
  });
  onTestFinished(() => fleet.stop());
  for (const gateway of fleet.gateways)
    await until('Redis decides', async () => (await readiness(gateway)).body.status === 'ok');
  const directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
  onTestFinished(() => directory.close());
  await directory.issue('issued', ['issued-secret']);
  const secrets = [key.secret, 'issued-secret'];

  const send = async (process: number, secret: string, path = '/v1/pets') => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`${fleet.origins[process]}${path}`, { headers });
    return { status: response.status, body: await response.json(), atMs: Date.now() };
  };
  const statusesOf = async (secret: string, requests: number) => {
    const statuses: number[] = [];
    for (let index = 0; index < requests; index++) statuses.push((await send(index % 3, secret)).status);
    return statuses;
  };
  for (const secret of secrets) expect(await statusesOf(secret, 6)).toEqual([200, 200, 200, 200, 200, 429]);
  const fromMs = Date.now() + 10_000;
  const from = new Date(fromMs).toISOString();
  await fleet.editConfig({
    plans: { free: { perMinute: 5, changes: [{ from, perMinute: 8, perDay: 20 }] } },
  });

  const upcoming = [{ from, limits: { perMinute: 8, perDay: 20 } }];
  const early: [limit: number, upcoming: unknown][] = [];
  const changed = new Set<string>();
  await until('every process has the later limits', async () => {
    for (const process of fleet.origins.keys()) {
      for (const secret of secrets) {
        const { body, atMs } = await send(process, secret, '/limits');
        if (body.windows.length === 2) changed.add(`${process} ${secret}`);
        if (atMs < fromMs) early.push([body.windows[0].limit, body.upcoming]);
        if (Date.now() > fromMs + 60_000) throw new Error('a process changes by its own clock');
      }
    }
    return changed.size === 6;
  });
  expect(early).toContainEqual([5, upcoming]);
  expect(early.filter(([limit]) => limit !== 5)).toEqual([]);

  for (const secret of secrets) {
    const { body } = await send(0, secret, '/limits');
    expect(body).toMatchObject({ windows: [{ limit: 8, used: 5 }, { limit: 20 }] });
    expect(body).not.toHaveProperty('upcoming');
    expect(await statusesOf(secret, 4)).toEqual([200, 200, 200, 429]);
  }
  for (const { adminUrl } of fleet.gateways) {
    const ask = (path: string) =>
      askAdmin(Number(new URL(adminUrl).port), `/api/v1${path}`, { token: token.token });
    const windows = [
      { name: 'minute', limit: 8 },
      { name: 'day', limit: 20 },
    ];
    const changes = [{ from, limits: { perMinute: 8, perDay: 20 } }];
    expect((await ask('/plans')).body.plans).toMatchObject([{ name: 'free', windows, changes }]);
    expect((await ask('/settings')).body.keys).toMatchObject([{ id: 'in-yaml', windows }]);
    expect((await ask('/keys/issued')).body.windows).toMatchObject(windows);
    const { limits } = (await ask('/keys/in-yaml/limits')).body;
    expect(limits.slice(-2)).toMatchObject([
      { limits: { perMinute: 5 } },
      { fromAt: from, limits: { perMinute: 8, perDay: 20 } },
    ]);
  }
});
