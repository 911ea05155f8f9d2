import { expect, onTestFinished } from 'vitest';
import { type ChangedGateway, startGateways } from '../admin/keys/change/change-fixture.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { directoryOf } from '../support/directory-of.ts';
import { readiness, startFleetHere } from '../support/fleet.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { makeKey, type RunningGateway } from '../support/gateway-process.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/** Guarantees of the whole gateway. `broken-gateways.test.ts` checks that each guarantee fails for a gateway with a mistake. */

const token = makeToken('read', 'alice');
const changeWithinMs = 1_000;

interface ReadingLimits {
  /** Settings that the reading needs. */
  readonly settings: object;
  /** Whether a change is still shown after its date. */
  readonly showsPastChanges: boolean;
  /** The windows and the announced changes of a key of the plan `free`, as one process shows them. */
  read(
    gateway: RunningGateway,
    key: { readonly id: string; readonly secret: string },
  ): Promise<{
    readonly windows: readonly object[];
    readonly upcoming?: readonly { readonly from: string; readonly limits: object }[];
  }>;
}

const asOperator: ReadingLimits = {
  settings: {},
  showsPastChanges: true,
  async read({ adminUrl }, { id }) {
    const ask = async (path: string) =>
      (await askAdmin(Number(new URL(adminUrl).port), `/api/v1${path}`, { token: token.token })).body;
    // The windows are read last, so they are from the configuration with these changes or from a later one.
    const [{ plans }, { windows }] = [await ask('/plans'), await ask(`/keys/${id}`)];
    const { changes } = plans.find(({ name }: { name: string }) => name === 'free');
    return { windows, ...(changes && { upcoming: changes }) };
  },
};

/**
 * When the clock of Redis reaches the date of a plan change, every process applies the new limits within one second. Requests that were
 * charged before the change still count. The plan `roomy` changes at the same date, and its keys send requests all the time.
 *
 * @param reading how the limits of a key are read: by operators, or by the holder of the key
 */
export async function plansChangeOnTheClockOfRedis(reading: ReadingLimits = asOperator): Promise<void> {
  const yaml = makeKey({ id: 'in-yaml', plan: 'free' });
  const probe = makeKey({ id: 'probe-in-yaml', plan: 'roomy' });
  const [free, roomy] = [{ perMinute: 5 }, { perMinute: 1_000_000 }];
  const windowsMs = freshWindows(Date.now());
  const bounds = { ...patientStore, limitsReadsPerMinuteMax: 1_000_000 };
  const fleet = await startFleetHere({
    // The clocks of two processes are wrong. One of these clocks is already past the date when the test starts.
    starts: [90_000, 0, -90_000].map((clockSkewMs) => ({ tuning: { bounds, windowsMs, clockSkewMs } })),
    config: {
      plans: { free, roomy },
      keys: { file: './keys.yaml', directory: true },
      ...reading.settings,
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    },
    files: { 'keys.yaml': [yaml.entry, probe.entry] },
  });
  onTestFinished(() => fleet.stop());
  for (const gateway of fleet.gateways)
    await until('Redis decides', async () => (await readiness(gateway)).body.status === 'ok');
  const directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
  onTestFinished(() => directory.close());
  await directory.issue('issued', ['issued-secret']);
  await directory.issue('probe-issued', ['probe-secret'], { plan: 'roomy' });
  const limited = [
    { id: 'in-yaml', secret: yaml.secret },
    { id: 'issued', secret: 'issued-secret' },
  ];

  const send = async (process: number, secret: string) => {
    const beganMs = Date.now();
    const response = await fetch(`${fleet.origins[process]}/v1/pets`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    await response.arrayBuffer();
    const isLater = response.headers.get('ratelimit-policy')?.includes('"day"') === true;
    // Redis and this process read the same clock of the machine.
    return { status: response.status, isLater, beganMs, endedMs: Date.now() };
  };
  const statusesOf = async (secret: string, requests: number) => {
    const statuses: number[] = [];
    for (let index = 0; index < requests; index++) statuses.push((await send(index % 3, secret)).status);
    return statuses;
  };
  for (const { secret } of limited)
    expect(await statusesOf(secret, 6)).toEqual([200, 200, 200, 200, 200, 429]);

  const { fromMs, from } = await announced();
  const changed = new Set<string>();
  let lastMs = Date.now();
  let pauseMaxMs = 0;
  while (changed.size < 6) {
    for (const process of fleet.origins.keys()) {
      for (const secret of [probe.secret, 'probe-secret']) {
        const { isLater, beganMs, endedMs } = await send(process, secret);
        // The longest gap between two responses shows how long the machine paused.
        pauseMaxMs = Math.max(pauseMaxMs, endedMs - lastMs);
        lastMs = endedMs;
        if (isLater) changed.add(`${process} ${secret}`);
        if (endedMs < fromMs) expect(isLater, `process ${process} changes before the date`).toBe(false);
        if (beganMs > fromMs + changeWithinMs + pauseMaxMs)
          expect(isLater, `process ${process} changes more than a second after the date`).toBe(true);
      }
    }
  }

  const [first] = fleet.gateways;
  if (first === undefined) throw new Error('three were started');
  for (const key of limited) {
    const shown = await reading.read(first, key);
    expect(shown.windows).toMatchObject([{ limit: 8, used: 5 }, { limit: 20 }]);
    if (!reading.showsPastChanges) expect(shown).not.toHaveProperty('upcoming');
    expect(await statusesOf(key.secret, 4)).toEqual([200, 200, 200, 429]);
  }
  for (const { adminUrl } of fleet.gateways) {
    const ask = (path: string) =>
      askAdmin(Number(new URL(adminUrl).port), `/api/v1${path}`, { token: token.token });
    const windows = [
      { name: 'minute', limit: 8 },
      { name: 'day', limit: 20 },
    ];
    const changes = [{ from, limits: { perMinute: 8, perDay: 20 } }];
    expect((await ask('/plans')).body.plans[0]).toMatchObject({ name: 'free', windows, changes });
    expect((await ask('/settings')).body.keys[0]).toMatchObject({ id: 'in-yaml', windows });
    expect((await ask('/keys/issued')).body.windows).toMatchObject(windows);
    const { limits } = (await ask('/keys/in-yaml/limits')).body;
    expect(limits.slice(-2)).toMatchObject([
      { limits: { perMinute: 5 } },
      { fromAt: from, limits: { perMinute: 8, perDay: 20 } },
    ]);
  }

  /**
   * Schedules a change of the plans, and waits until every process announces the change. If a process announces the change after its date,
   * the function schedules a later change.
   */
  async function announced(aheadMs = 2_000): Promise<{ fromMs: number; from: string }> {
    const fromMs = Date.now() + aheadMs;
    const from = new Date(fromMs).toISOString();
    const later = { perMinute: 8, perDay: 20 };
    await fleet.editConfig({
      plans: {
        free: { ...free, changes: [{ from, ...later }] },
        roomy: { ...roomy, changes: [{ from, ...roomy, perDay: 1_000_000 }] },
      },
    });
    const announcing = new Set<string>();
    await until('every process announces the change', async () => {
      for (const [process, gateway] of fleet.gateways.entries()) {
        for (const key of limited) {
          const { windows, upcoming } = await reading.read(gateway, key);
          if (Date.now() >= fromMs) return true;
          // If `upcoming` does not contain this date, the process has not loaded the edited configuration yet.
          if (upcoming?.[0]?.from !== from) continue;
          expect(windows).toMatchObject([{ limit: 5, used: 5 }]);
          expect(upcoming).toEqual([{ from, limits: later }]);
          announcing.add(`${process} ${key.id}`);
        }
      }
      return announcing.size === 6;
    });
    return announcing.size === 6 && Date.now() < fromMs ? { fromMs, from } : announced(2 * aheadMs);
  }
}

const owner = '203.0.113.7';
const thief = '198.51.100.7';
const addressPerMinute = 4;

export const addressOverrides = {
  trustedProxies: ['127.0.0.1'],
  addressBucket: { perMinute: addressPerMinute },
  bans: { after: 1, within: '60s', for: '60s', max: '60s' },
};

/** Sends a request as a client behind a trusted proxy. */
export async function sendFrom(
  { publicPort }: ChangedGateway,
  secret: string,
  from: string,
  path = '/v1/pets',
) {
  const headers = { authorization: `Bearer ${secret}`, 'x-forwarded-for': from };
  const response = await fetch(`http://127.0.0.1:${publicPort}${path}`, { headers });
  const { code, message } = (await response.json()) as { code?: string; message?: string };
  const figure = (name: string) => response.headers.get(`x-ratelimit-${name}`);
  return {
    answer: [response.status, code],
    message,
    figures: [figure('limit'), figure('remaining')],
    retryAfter: response.headers.get('retry-after'),
    policy: response.headers.get('ratelimit-policy'),
  };
}

/**
 * A request from an address that its key does not allow is charged to the bucket of that address and never to the key.
 *
 * @param settings further settings, with which the gateway serves the `pages`
 */
export async function foreignAddressesChargeNoKey(
  settings: object = {},
  pages: readonly [string, string] = ['/v1/pets/1', '/v1/store/orders'],
): Promise<void> {
  const key = makeKey({ id: 'office', addresses: ['203.0.113.0/24', '2001:db8::/32'] });
  const overrides = { ...addressOverrides, ...settings };
  const { gateways } = await startGateways(1, { keys: [key.entry], overrides });
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('no gateway was started');

  const paths = ['/v1/pets', ...pages, '/v1/nothing'];
  for (const [index, path] of paths.entries()) {
    expect(await sendFrom(gateway, key.secret, thief, path)).toMatchObject({
      answer: [403, 'address_not_allowed'],
      message: `The API key may not be used from the address ${thief}.`,
      figures: [String(addressPerMinute), String(addressPerMinute - 1 - index)],
      policy: expect.stringContaining('"address"'),
    });
  }
  for (const path of ['/v1/pets', pages[0]]) {
    const { answer, retryAfter } = await sendFrom(gateway, key.secret, thief, path);
    expect([answer, Number(retryAfter) > 0]).toEqual([[429, 'rate_limited'], true]);
  }

  const shown = (await gateway.ask('GET', '/keys/office')).body;
  expect(shown).toMatchObject({ state: 'unused', strikes: 0, offered24h: 0 });
  expect(shown).not.toHaveProperty('lastSeenMs');
  expect(shown.secrets[0]).not.toHaveProperty('lastUsedAt');
  expect(shown.why.last24h.refusedNetworks).toEqual([
    { network: '198.51.100.0/24', requests: 6, lastAt: expect.any(String) },
  ]);
  expect(shown.why.sentence).toContain('6 from 198.51.100.0/24');

  // The owner still has the whole quota, and the key has neither a strike nor a ban.
  for (const from of [owner, '2001:db8::7', '::ffff:203.0.113.8', owner, owner]) {
    expect((await sendFrom(gateway, key.secret, from)).answer).toEqual([200, undefined]);
  }
  expect((await sendFrom(gateway, key.secret, owner)).answer[0]).toBe(429);
}
