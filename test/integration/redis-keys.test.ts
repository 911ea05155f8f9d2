import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createFlushFleet } from '../../gateway/fleet/flush/flush-fleet.ts';
import { createKeyDirectory } from '../../gateway/keys/directory/key-directory.ts';
import { createBlockStore } from '../../gateway/keys/leaks/blocked/block-store.ts';
import { toLimits } from '../../gateway/keys/limits/limit-fields.ts';
import { thresholdWindows } from '../../gateway/quota/thresholds.ts';
import { type RedisKeyKind, redisKeys } from '../../gateway/redis/redis-keys.ts';
import { createFleetHealth } from '../../gateway/request/forward/upstream/fleet/fleet-health.ts';
import { createLimiter } from '../../gateway/request/limit/limiter.ts';
import { windowIndex } from '../../gateway/shared/calendar-windows.ts';
import { digestSecret } from '../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { createUsage } from '../../gateway/usage/usage.ts';
import { capabilityCases } from '../support/capability-cases.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { createGateway } from '../support/create-gateway.ts';
import { makeKey } from '../support/gateway-process.ts';
import { inspect } from '../support/inspect.ts';
import { settingsOf } from '../support/settings-of.ts';
import { startRedis } from '../support/start-redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const keysOfCapabilities = (await capabilityCases()).flatMap(({ redisKeys }) => redisKeys ?? []);
const allKeys: Readonly<Record<string, RedisKeyKind>> = Object.assign(
  {},
  redisKeys,
  ...keysOfCapabilities.map(({ kinds }) => kinds),
);

const prefix = 'a-prefix-of-20-chars';
const limits = { perSecond: 50, perMinute: 60, perHour: 100, perDay: 1_000, perMonth: 10_000 };

/** A pattern of the table as a regular expression, in which `<…>` matches anything. */
function toRegExp(pattern: string): RegExp {
  const literal = pattern.replace('<prefix>', prefix).split(/<[^>]+>/);
  return new RegExp(`^${literal.map((part) => part.replaceAll(/[{}]/g, '\\$&')).join('.+')}$`);
}

it('every key in Redis is in the tables of keys, with its type, its expiry, and at most its size', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = inspect(server.url);
  onTestFinished(() => redis.disconnect());
  const [calm, greedy, freed] = ['calm', 'greedy', 'freed'].map((name) =>
    makeKey({ plan: 'all', id: `${name}-with-20-characters`.slice(0, 20) }),
  );
  if (!calm || !greedy || !freed) throw new Error('three keys were made');
  const more = keysOfCapabilities.flatMap(({ config }) => config?.(limits) ?? []);
  const config = {
    upstream: { url: 'http://127.0.0.1:1' },
    plans: { all: Object.assign({}, limits, ...more.map(({ plan }) => plan)) },
    redis: { url: server.url, prefix },
    keys: [calm.entry, greedy.entry, freed.entry],
    bans: { after: 20 },
    addressBucket: { perMinute: 2 },
    cors: { origins: ['https://app.example.com'] },
    docsPath: '/docs',
  };
  const settings = await settingsOf(Object.assign(config, ...more.map((one) => one.settings)), {
    hook: `whsec_${Buffer.alloc(32).toString('base64')}`,
  });
  const gateway = createGateway({
    settings,
    log: { logger: pino({ level: 'silent' }), access: () => {} },
    bounds: tunedBounds({ ...patientStore, usageFlushIntervalMs: 500 }),
  });
  const { port } = (await gateway.start()).listen;
  onTestFinished(() => gateway.drain({ graceMs: 0 }));
  const send = async (
    secret: string,
    { path = '/v1/pets', ...init }: RequestInit & { path?: string } = {},
  ) => {
    const headers = { authorization: `Bearer ${secret}`, ...init.headers };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers });
    await response.arrayBuffer();
    return response.status;
  };

  const statuses = new Set<number>();
  statuses.add(await send(calm.secret));
  for (let request = 0; request < 90; request++) statuses.add(await send(greedy.secret));
  for (let request = 0; request < 5; request++) statuses.add(await send('nobody'));
  const preflight = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' };
  statuses.add(await send('', { method: 'OPTIONS', headers: preflight }));
  for (const path of keysOfCapabilities.flatMap(({ read }) => read ?? [])) await send(calm.secret, { path });
  statuses.add(await send('', { path: '/docs' }));
  expect([...statuses].sort()).toEqual([200, 204, 401, 429, 503]);

  gateway.reload(settings);

  const limiter = createLimiter({
    log: pino({ level: 'silent' }),
    nowMs: Date.now,
    planOf: () => undefined,
    bounds: tunedBounds(patientStore),
    redis: { url: server.url, prefix, onFailure: 'local' },
  });
  onTestFinished(() => limiter.close());
  await limiter.chargePreflight('192.0.2.1');
  const bans = settings.bans;
  expect((await limiter.adjust(freed.entry.id, { lift: true, bans })).kind).toBe('changed');
  expect((await limiter.adjust(calm.entry.id, { reset: true, bans })).kind).toBe('changed');
  const grant = { limits: toLimits({ perMinute: 600, perDay: 50_000 }), untilMs: Date.now() + 600_000 };
  for (const { id } of [greedy.entry, freed.entry]) {
    expect((await limiter.adjust(id, { grant })).kind).toBe('changed');
  }
  for (const window of thresholdWindows) {
    const index = windowIndex(defaultBounds.windowsMs[window], Date.now());
    const mark = { keyId: greedy.entry.id, window, index, percent: 100, resetMs: 0 };
    expect((await limiter.confirmTold(mark)).kind).toBe('confirmed');
  }

  // The gateway writes the totals of a day at least one day after the day has ended.
  const twoDaysMs = 2 * 86_400_000;
  const connection = await connectRedis({ prefix, place: { url: server.url } });
  onTestFinished(connection.close);
  const bounds = tunedBounds({ ...patientStore, usageCloseTimeoutMs: 20_000 });
  const usage = { redis: connection, keepDays: 8, minuteMs: 60_000, bounds };
  const past = createUsage({ ...usage, nowMs: () => Date.now() });
  const inForce = { name: 'minute', limit: 1, remaining: 1, resetMs: 0, windowSeconds: 60 } as const;
  const rateLimit = { nowMs: Date.now() - twoDaysMs, windows: [inForce], inForce };
  past.recorder.decided(
    calm.entry.id,
    { kind: 'admitted', units: 1, rateLimit, source: 'shared' },
    '192.0.2.1',
    '01234567',
  );
  await past.close();
  const present = createUsage({ ...usage, nowMs: () => Date.now() });
  onTestFinished(() => present.close());

  const directory = createKeyDirectory({
    redis: connection,
    nowMs: Date.now,
    storeNowMs: Date.now,
    log: pino({ level: 'silent' }),
    bounds,
  });
  const secrets = Array.from({ length: defaultBounds.directorySecretsPerKeyMax }, (_, index) => {
    return { digest: digestSecret(`secret ${index}`), createdMs: Date.now(), expiresMs: Date.now() };
  });
  const issued = { id: 'issued-with-20-chars', plan: 'all', name: 'n'.repeat(200), disabled: false, secrets };
  expect((await directory.create(issued)).kind).toBe('written');
  const gone = await directory.create({ ...issued, id: 'removed-20-chars-long', secrets: [] });
  expect(gone.kind === 'written' && (await directory.remove(gone.key.id, gone.key)).kind).toBe('removed');
  await directory.remember('a'.repeat(64), 'a'.repeat(200), 600_000);

  const leak = { atMs: Date.now(), by: 'github', ended: true, url: 'u'.repeat(500), source: 's'.repeat(100) };
  const leaked = { digest: digestSecret(freed.secret), keyId: freed.entry.id, leak };
  const blocks = createBlockStore({ redis: connection, bounds });
  expect((await blocks.add(leaked)).kind).toBe('added');

  const { flushFleet } = createFlushFleet({
    records: connection,
    presence: {
      flushOwn: () => {},
      read: async () => ({ isComplete: true, answeredBy: '', processes: [] }),
    },
    bounds: tunedBounds({ ...patientStore, fleetFlushTimeoutMs: 60_000 }),
  });
  expect(await flushFleet()).toEqual({ isComplete: true, behind: [] });

  for (const { fill } of keysOfCapabilities)
    await fill?.({ connection, limiter, bounds, keyId: greedy.entry.id });

  const [target] = ['one', 'two', 'three'].map((processId) => {
    const fleet = createFleetHealth({ records: connection, processId, bounds });
    onTestFinished(fleet.close);
    return fleet.join('digest-16-chars.', () => {});
  });
  await until('the checkers are counted', () => (target?.checkers() ?? 0) >= 3);
  target?.report({ health: 'down', reason: 'r'.repeat(300), atMs: performance.now() });

  // The gateway probes Redis with a key that exists only briefly in each second, so the loop lists the keys repeatedly.
  const seen = new Map<string, string>();
  const tooLarge = new Map<string, number>();
  const deadlineMs = Date.now() + 40_000;
  while (seen.size < Object.keys(allKeys).length && Date.now() < deadlineMs) {
    for (const name of await redis.keys('*')) {
      const kinds = Object.entries(allKeys).filter(([, { pattern }]) => toRegExp(pattern).test(name));
      expect(kinds.map(([kind]) => [name, kind])).toHaveLength(1);
      const [[kind = '', entry] = []] = kinds;
      const [type, ttlMs, bytes] = await Promise.all([
        redis.type(name),
        redis.pttl(name),
        redis.memory('USAGE', name),
      ]);
      // `-2` and `none` mean that the key has expired since it was listed.
      if (ttlMs === -2 || type === 'none') continue;
      seen.set(kind, name);
      expect([name, type]).toEqual([name, entry?.type]);
      expect([name, ttlMs > 0]).toEqual([name, entry?.isPermanent !== true]);
      if (Number(bytes) > (entry?.bytesMax ?? 0)) tooLarge.set(name, Number(bytes));
    }
    await sleep(50);
  }
  expect([...tooLarge]).toEqual([]);
  expect([...seen.keys()].sort()).toEqual(Object.keys(allKeys).sort());
});
