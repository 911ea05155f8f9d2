import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Decision } from '../../../gateway/shared/model.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { inspect } from '../../support/inspect.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { freshPrefix } from '../../support/redis.ts';
import { type RedisServer, startRedis } from '../../support/start-redis.ts';
import { steadyStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import {
  count,
  dayUsed,
  decideInTurn,
  decideTogether,
  expectOneOutage,
  keyOf,
  keyWith,
  type LoggedLimiter,
  noBans,
  openLimiter,
  openLimiters,
  untilAway,
  untilBack,
} from './limiter-fixture.ts';

const tuning = steadyStore;

let server: RedisServer;
let inspector: Redis;
beforeAll(async () => {
  server = await startRedis();
  inspector = inspect(server.url);
});
afterAll(async () => {
  inspector.disconnect();
  await server.stop();
});

/** The ways in which Redis fails and recovers. */
const outages: readonly { name: string; begin: () => unknown; end: () => unknown }[] = [
  { name: 'dead', begin: () => server.kill(), end: () => server.restart() },
  { name: 'frozen', begin: () => server.freeze(), end: () => server.thaw() },
  {
    name: 'out of memory',
    begin: () => inspector.config('SET', 'maxmemory', '1'),
    end: () => inspector.config('SET', 'maxmemory', '0'),
  },
  {
    name: 'read-only',
    begin: () => inspector.replicaof('127.0.0.1', 1),
    end: () => inspector.replicaof('NO', 'ONE'),
  },
];

describe.each(outages)('while Redis is $name', ({ name, begin, end }) => {
  it('a process decides the trial from its last counts too, and its decisions then count in the trial as in the plan', async () => {
    const limiter = openLimiter({ tuning, url: server.url });
    const key = { ...keyOf(10, 100), trial: limitsOf({ perMinute: 6, perDay: 100 }) };
    const trialsOf = (decisions: readonly Decision[]) => decisions.map(({ trial }) => trial);
    await decideInTurn(limiter, key, 3);
    await begin();
    try {
      await untilAway(limiter);
      const alone = await decideTogether(limiter, key, 5);
      expect(alone.map(({ source }) => source)).toEqual(Array(5).fill('local'));
      expect(trialsOf(alone)).toEqual([...Array(3).fill('admitted'), ...Array(2).fill('minute')]);
    } finally {
      await end();
    }
    await untilBack(limiter);
    const later = trialsOf(await decideInTurn(limiter, key, 4));
    // The plan admitted 5 requests alone. A dead Redis has lost the 3 requests from before the outage.
    expect(later).toEqual([name === 'dead' ? 'admitted' : 'minute', ...Array(3).fill('minute')]);
  });

  it('a process continues from the last counts of Redis and writes its own back afterwards', async () => {
    const limiter = openLimiter({ tuning, url: server.url });
    const key = keyOf(10, 100);
    await decideInTurn(limiter, key, 3);
    await begin();
    try {
      await untilAway(limiter);
      const alone = await decideTogether(limiter, key, 12);
      expect(alone.map(({ source }) => source)).toEqual(Array(12).fill('local'));
      expect([count(alone, 'admitted'), count(alone, 'refused')]).toEqual([7, 5]);
    } finally {
      await end();
    }
    await untilBack(limiter);
    const [shared] = await decideInTurn(
      limiter,
      { ...key, limits: limitsOf({ perMinute: 20, perDay: 100 }) },
      1,
    );
    // If Redis restarted without data, it has only the 7 requests that the limiter wrote back. Otherwise, Redis also has the 3 requests
    // from before the outage.
    const used = 20 - (shared?.rateLimit.inForce.remaining ?? 0);
    expect(shared?.source).toBe('shared');
    expect([8, 11]).toContain(used);
    expectOneOutage([limiter]);
    const back = limiter.logged.find(({ msg }) => msg === 'Redis is back');
    expect(back?.requestsDecidedAlone).toBeGreaterThanOrEqual(12);
    expect(back?.keysToWriteBack).toBeGreaterThanOrEqual(1);
  });

  it('requests in progress that a process admitted alone count for all processes as soon as Redis is back', async () => {
    const { prefix, limiters } = openLimiters(2, server.url, { ...tuning, leaseRenewalMs: 3_600_000 });
    const [one, other] = limiters as [LoggedLimiter, LoggedLimiter];
    const key = { ...keyOf(100, 100), concurrent: 2 };
    await begin();
    try {
      await untilAway(one, other);
      expect(count(await decideTogether(one, key, 3), 'admitted')).toBe(2);
    } finally {
      await end();
    }
    await untilBack(one, other);
    await until('Redis has the lease', async () => {
      return (await inspector.hget(`${prefix}:{${key.id}}`, 'leases')) !== null;
    });
    expect((await other.decide(key, noBans)).kind).toBe('crowded');
  });

  it('requests under `refuse` are refused as unavailable, with the time to retry', async () => {
    const limiter = openLimiter({ tuning, url: server.url, onFailure: 'refuse' });
    const key = keyOf(10, 100);
    await decideInTurn(limiter, key, 3);
    await begin();
    try {
      await untilAway(limiter);
      const [decision] = await decideTogether(limiter, key, 1);
      expect(decision).toMatchObject({ kind: 'unavailable', source: 'local' });
      expect(decision?.rateLimit.inForce).toMatchObject({ name: 'minute', limit: 10, remaining: 7 });
      const waitMs = decision?.kind === 'unavailable' ? decision.retryAtMs - decision.rateLimit.nowMs : 0;
      expect(waitMs).toBe(1_000);
      expect(limiter.state()).toMatchObject({ kind: 'redis', available: false, onFailure: 'refuse' });
    } finally {
      await end();
    }
    await untilBack(limiter);
    expect((await decideTogether(limiter, key, 1))[0]).toMatchObject({ kind: 'admitted', source: 'shared' });
  });
});

it('a request that Redis could not decide names only the windows that it would be charged in', async () => {
  const limiter = openLimiter({ tuning, url: 'redis://127.0.0.1:1', onFailure: 'refuse' });
  const limits = limitsOf({ perMinute: 10, groups: { reports: { operations: ['export'], perMinute: 2 } } });
  await untilAway(limiter);
  const key = keyWith(limits);
  const decisions = ['listPets', 'export'].map((operation) =>
    limiter.own.decide(key, { bans: noBans }, { units: 1, operation }),
  );
  const [plain, report] = (await Promise.all(decisions)).map((decision) =>
    decision.kind === 'unavailable' ? decision.rateLimit : undefined,
  );
  expect(plain?.windows).toMatchObject([{ name: 'minute', group: undefined }]);
  expect(plain?.inForce).toMatchObject({ limit: 10 });
  expect(report?.windows).toMatchObject([{ limit: 10 }, { group: 'reports', limit: 2 }]);
  expect(report?.inForce).toMatchObject({ group: 'reports' });
});

it('every request is decided, by Redis or locally, while Redis fails and returns under load', async () => {
  const limiter = openLimiter({ tuning, url: server.url });
  const key = keyOf(1_000_000, 1_000_000);
  const decisions: Decision[] = [];
  let isRunning = true;
  const clients = Array.from({ length: 20 }, async () => {
    while (isRunning) {
      decisions.push(await limiter.decide(key, noBans));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  const untilDecided = (source: Decision['source']) => {
    const from = decisions.length;
    const isSeen = () => decisions.slice(from).some((decision) => decision.source === source);
    return until(`a client is decided ${source}`, isSeen);
  };
  await untilDecided('shared');
  await server.kill();
  await untilAway(limiter);
  await untilDecided('local');
  await server.restart();
  await untilBack(limiter);
  await untilDecided('shared');
  server.freeze();
  await untilAway(limiter);
  await untilDecided('local');
  server.thaw();
  await untilBack(limiter);
  await untilDecided('shared');
  isRunning = false;
  await Promise.all(clients);
  expect(count(decisions, 'admitted')).toBe(decisions.length);
});

it('an outage admits at most the limit once more on each process, and all admitted requests are counted afterwards', async () => {
  const key = keyOf(40, 1_000);
  const { limiters } = openLimiters(3, server.url, tuning);
  const admitted: number[] = [];
  const ask = async (requests: number) => {
    for (const limiter of limiters) {
      admitted.push(count(await decideTogether(limiter, key, requests), 'admitted'));
    }
  };
  await ask(10);
  server.freeze();
  await untilAway(...limiters);
  await ask(100);
  server.thaw();
  await untilBack(...limiters);
  await ask(100);
  const total = admitted.reduce((sum, each) => sum + each, 0);
  expect(admitted.slice(0, 3)).toEqual([10, 10, 10]);
  expect(total).toBeLessThanOrEqual(40 + 3 * 40);
  for (const limiter of limiters) {
    await expect.poll(() => limiter.decide(key, noBans)).toMatchObject({ kind: 'refused', source: 'shared' });
  }
});

it('a ban that begins during an outage is shared when Redis is back', async () => {
  const bans = { after: 5, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
  const [limiter, neighbour] = openLimiters(2, server.url, tuning).limiters;
  if (limiter === undefined || neighbour === undefined) throw new Error('two limiters were opened');
  const key = keyOf(2, 100);
  await decideInTurn(limiter, key, 1, bans);
  server.freeze();
  await untilAway(limiter);
  const alone = await decideTogether(limiter, key, 10, bans);
  expect([count(alone, 'admitted'), count(alone, 'refused'), count(alone, 'banned')]).toEqual([1, 4, 5]);
  server.thaw();
  await untilBack(limiter, neighbour);
  await until('the neighbour bans', async () => (await neighbour.decide(key, bans)).kind === 'banned');
});

it('a call that timed out but ran is not charged twice', async () => {
  const limiter = openLimiter({ tuning, url: server.url });
  const key = keyOf(10, 100);
  await decideInTurn(limiter, key, 1);
  server.freeze();
  // One failed call does not open the circuit breaker, so the limiter sends the call. The call waits in the socket of the frozen server and
  // runs when the server continues.
  const [inDoubt] = await decideTogether(limiter, key, 4);
  server.thaw();
  expect(inDoubt).toMatchObject({ kind: 'admitted', source: 'local' });
  expect(inDoubt?.rateLimit.inForce.remaining).toBe(8);
  await until('Redis counts them once', async () => {
    const [decision] = await decideInTurn(
      limiter,
      { ...key, limits: limitsOf({ perMinute: 0, perDay: 100 }) },
      1,
    );
    return decision?.source === 'shared' && decision.rateLimit.windows[1]?.remaining === 95;
  });
});

it('a key whose Redis name has foreign data is decided locally and logged once, and Redis counts for all other keys', async () => {
  const prefix = freshPrefix();
  const limiter = openLimiter({ url: server.url, prefix });
  const [broken, sound] = [keyOf(10, 100), keyOf(10, 100)];
  await inspector.set(`${prefix}:{${broken.id}}`, 'no hash');
  const decisions = [
    ...(await decideInTurn(limiter, broken, 12)),
    ...(await decideInTurn(limiter, sound, 1)),
    ...(await Promise.all([limiter.decide(broken, noBans), limiter.decide(sound, noBans)])),
  ];
  expect(decisions.map(({ kind, source }) => `${kind} ${source}`)).toEqual([
    ...Array(10).fill('admitted local'),
    ...['refused local', 'refused local', 'admitted shared', 'refused local', 'admitted shared'],
  ]);
  expect(limiter.state()).toMatchObject({ available: true });
  expect(limiter.logged).toEqual([expect.objectContaining({ level: 40, keyId: broken.id })]);

  await inspector.del(`${prefix}:{${broken.id}}`);
  await until('what was admitted alone is written back', async () => {
    return (await dayUsed(inspector, prefix, broken)) === 10;
  });
});

it('a decision that the ACL stops halfway is not charged twice', async () => {
  const prefix = freshPrefix();
  const user = ['on', '>pw', '~*', '&*', '+@all', '-pttl'];
  await inspector.call('ACL', 'SETUSER', prefix, ...user);
  onTestFinished(async () => void (await inspector.call('ACL', 'DELUSER', prefix)));
  const limiter = openLimiter({ url: server.url.replace('//', `//${prefix}:pw@`), prefix });
  const key = keyOf(100, 1_000);
  const decisions = await decideInTurn(limiter, key, 3);
  // Only the first decision needs the command that the ACL refuses, because only the first decision opens windows.
  expect(decisions.map(({ source }) => source)).toEqual(['local', 'shared', 'shared']);
  expect(await dayUsed(inspector, prefix, key)).toBe(3);
});

it('a Redis that lost its scripts still decides', async () => {
  const limiter = openLimiter({ url: server.url });
  const keys = [keyOf(10, 100), keyOf(10, 100)];
  const ask = async () => (await Promise.all(keys.map((key) => decideTogether(limiter, key, 2)))).flat();
  await ask();
  await inspector.script('FLUSH');
  const decisions = await ask();
  expect(decisions.map(({ source, rateLimit }) => [source, rateLimit.inForce.remaining])).toEqual(
    [7, 6, 7, 6].map((remaining) => ['shared', remaining]),
  );
});

it('a limiter that starts without Redis uses Redis as soon as it is reachable', async () => {
  await server.kill();
  const limiter = openLimiter({ tuning, url: server.url });
  const key = keyOf(10, 100);
  expect((await decideInTurn(limiter, key, 1))[0]).toMatchObject({ kind: 'admitted', source: 'local' });
  expect(limiter.state()).toMatchObject({
    available: false,
    reason: expect.stringContaining('ECONNREFUSED'),
  });
  await server.restart();
  await untilBack(limiter);
  await until('a decision is shared', async () => (await limiter.decide(key, noBans)).source === 'shared');
});

it('closing a limiter does not wait for a frozen Redis', async () => {
  const limiter = openLimiter({ tuning, url: server.url });
  await decideInTurn(limiter, keyOf(1, 100), 5);
  server.freeze();
  try {
    const timeout = new Promise((resolve) =>
      setTimeout(resolve, 10 * defaultBounds.storeCloseTimeoutMs, 'hung'),
    );
    expect(await Promise.race([limiter.close(), timeout])).toBeUndefined();
  } finally {
    server.thaw();
  }
});

it('a new password of Redis is the reason in the log, and each change of the reason is logged', async () => {
  const owned = await startRedis();
  const admin = inspect(owned.url);
  onTestFinished(async () => {
    admin.disconnect();
    await owned.stop();
  });
  const setPassword = (password: string) =>
    admin.acl('SETUSER', 'gateway', 'on', 'resetpass', `>${password}`, '~*', '&*', '+@all');
  await setPassword('first');
  const limiter = openLimiter({ tuning, url: owned.url.replace('redis://', 'redis://gateway:first@') });
  const reasons = () =>
    limiter.logged.flatMap(({ reason }) => (reason === undefined ? [] : [String(reason)]));
  await decideInTurn(limiter, keyOf(10, 100), 1);

  await setPassword('second');
  await admin.call('CLIENT', 'KILL', 'USER', 'gateway');
  await untilAway(limiter);
  await until('the log has the reason', () => reasons().some((reason) => reason.startsWith('WRONGPASS')));
  expect(limiter.state()).toMatchObject({ reason: expect.stringMatching(/^WRONGPASS/) });

  await owned.kill();
  await until('the log has the next reason', () =>
    reasons().some((reason) => reason.includes('ECONNREFUSED')),
  );
  // A reason is repeated after a minute at the earliest.
  expect(new Set(reasons()).size).toBe(reasons().length);
  expect(reasons().join()).not.toMatch(/first|second/);

  await owned.restart();
  await setPassword('first');
  await untilBack(limiter);
  expectOneOutage([limiter]);
});
