import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { Health } from '../../../../gateway/request/forward/upstream/check-health.ts';
import { createFleetHealth } from '../../../../gateway/request/forward/upstream/fleet/fleet-health.ts';
import { type SharedChecks, watchHealth } from '../../../../gateway/request/forward/upstream/watch-health.ts';
import { connectRedis, keysOf } from '../../../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore } from '../../../support/tuning.ts';
import { until } from '../../../support/until.ts';
import { upstreamAt } from '../start-front.ts';

const bounds = tunedBounds({
  ...patientStore,
  healthPauseMs: 20,
  healthFleetPauseMs: 10,
  healthTurnMs: 1,
  healthTimeoutMs: 30,
});

interface Watcher {
  readonly target: {
    health: Health;
    hasResponded: boolean;
    unreachableMs: number | undefined;
    inFlight: number;
  };
  /** Marks the target as down, as a request does that cannot connect. */
  eject(): void;
  /** The result of the next checks. */
  result: Health;
  /** Whether the next checks cannot connect. */
  isUnreachable: boolean;
  /** The changes of the target's health. */
  readonly changes: Health[];
  /** How long a check takes. */
  checkMs: number;
  checks: number;
}

interface Options {
  readonly shared?: SharedChecks;
  readonly path?: string | undefined;
  readonly url?: string;
  /** Whether no turn of the process comes during the test. */
  readonly hasNoTurn?: boolean;
}

function startWatcher({
  shared,
  path = '/healthz',
  url = 'http://192.0.2.1:80',
  hasNoTurn = false,
}: Options = {}): Watcher {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const target = {
    url: new URL(url),
    health: 'healthy' as Health,
    reason: undefined,
    hasResponded: false,
    unreachableMs: undefined as number | undefined,
    inFlight: 0,
  };
  const eject = () => {
    target.health = 'down';
    target.unreachableMs = performance.now();
  };
  const watcher: Watcher = {
    target,
    eject,
    result: 'healthy',
    isUnreachable: false,
    changes: [],
    checkMs: 0,
    checks: 0,
  };
  void watchHealth({
    target,
    upstream: { ...upstreamAt(url), health: path === '' ? undefined : path },
    host: undefined,
    async check() {
      watcher.checks++;
      const { result, checkMs, isUnreachable } = watcher;
      if (checkMs > 0) await sleep(checkMs);
      return { health: result, reason: result === 'healthy' ? undefined : 'it fails', isUnreachable };
    },
    setHealth({ health }) {
      if (health !== target.health) watcher.changes.push(health);
      target.health = health;
    },
    shared,
    bounds: hasNoTurn ? { ...bounds, healthTurnMs: 600_000 } : bounds,
    random: hasNoTurn ? () => 1 : Math.random,
    stop: stop.signal,
  });
  return watcher;
}

/** Watchers of the same target in several processes, which know each other. */
async function startFleet(count: number, machineOf = (_index: number) => 'one') {
  const prefix = freshPrefix();
  const records = await connectRedis({ prefix, place: { url: redisUrl() }, bounds });
  onTestFinished(() => records.close());
  const fleets = Array.from({ length: count }, (_, index) => {
    const fleet = createFleetHealth({ records, processId: `process-${index}`, bounds });
    onTestFinished(fleet.close);
    return { fleet, machine: machineOf(index) };
  });
  return {
    start: (options: Options = {}, ofOne: (index: number) => Options = () => ({})) =>
      fleets.map((shared, index) => startWatcher({ ...options, ...ofOne(index), shared })),
    /** For each address, the number of processes that check it. */
    async checkers() {
      const keys = (await keysOf(records)).filter((key) => key.includes(':checkers:'));
      const texts = await Promise.all(keys.map((key) => records.commands.get(key)));
      return texts.map((text) => Number(text?.split(' ')[1]));
    },
  };
}

const healths = (watchers: readonly Watcher[]) => watchers.map(({ target }) => target.health);

it('when a target fails for all processes, all avoid it, and all use it again after it has recovered', async () => {
  const { start, checkers } = await startFleet(6);
  const watchers = start();
  await expect.poll(checkers).toEqual([6]);
  for (const watcher of watchers) watcher.result = 'down';
  await expect.poll(() => healths(watchers)).toEqual(Array(6).fill('down'));
  for (const watcher of watchers) watcher.result = 'healthy';
  await expect.poll(() => healths(watchers)).toEqual(Array(6).fill('healthy'));
});

it('a process that cannot reach a target avoids it until its own check passes, and the others go on using it', async () => {
  const { start, checkers } = await startFleet(6);
  const watchers = start();
  await expect.poll(checkers).toEqual([6]);
  const [cut, ...others] = watchers;
  if (cut === undefined) throw new Error('six were started');
  cut.result = 'down';
  await expect.poll(() => cut.target.health).toBe('down');
  const before = watchers.map(({ checks }) => checks);
  await until('each has checked ten more times', () => {
    expect(healths(others)).toEqual(Array(5).fill('healthy'));
    expect(cut.target.health).toBe('down');
    return watchers.every(({ checks }, index) => checks >= (before[index] ?? 0) + 10);
  });
  cut.result = 'healthy';
  await expect.poll(() => cut.target.health).toBe('healthy');
});

it('a process that could not connect to a target uses it again after a check of another process, but only once', async () => {
  const { start, checkers } = await startFleet(6);
  const [cut, ...others] = start({}, (index) => (index === 0 ? { hasNoTurn: true } : {}));
  await expect.poll(checkers).toEqual([6]);
  if (cut === undefined) throw new Error('six were started');
  cut.eject();
  await expect.poll(() => cut.target.health).toBe('healthy');
  cut.eject();
  const before = others.map(({ checks }) => checks);
  await until('each other process has checked ten more times', () => {
    expect(cut.target.health).toBe('down');
    return others.every(({ checks }, index) => checks >= (before[index] ?? 0) + 10);
  });
});

it('a process whose checks cannot connect uses the target once after a check of another process', async () => {
  const { start, checkers } = await startFleet(6);
  const watchers = start();
  await expect.poll(checkers).toEqual([6]);
  const [cut] = watchers;
  if (cut === undefined) throw new Error('six were started');
  Object.assign(cut, { result: 'down', isUnreachable: true });
  await expect.poll(() => cut.changes).toEqual(['down', 'healthy', 'down']);
  const before = watchers.map(({ checks }) => checks);
  await until('each has checked ten more times', () => {
    expect(cut.changes).toHaveLength(3);
    return watchers.every(({ checks }, index) => checks >= (before[index] ?? 0) + 10);
  });
});

it('a check that takes far longer than its timeout is no evidence for other processes', async () => {
  const { start, checkers } = await startFleet(6);
  const watchers = start();
  await expect.poll(checkers).toEqual([6]);
  for (const watcher of watchers.slice(0, 3)) {
    watcher.result = 'silent';
    watcher.checkMs = 3 * bounds.healthTimeoutMs;
  }
  await expect.poll(() => healths(watchers).slice(0, 3)).toEqual(Array(3).fill('silent'));
  const before = watchers.map(({ checks }) => checks);
  await until('each has checked five more times', () => {
    expect(healths(watchers).slice(3)).toEqual(Array(3).fill('healthy'));
    return watchers.every(({ checks }, index) => checks >= (before[index] ?? 0) + 5);
  });
});

it.each([
  ['a loopback address', 'http://127.0.0.1:80', [3, 3]],
  ['a loopback address of IPv6', 'http://[::1]:80', [3, 3]],
  ['any other address', 'http://192.0.2.1:80', [6]],
])(
  'processes of two machines share the checks of %s as the address demands',
  async (_what, url, expected) => {
    const { start, checkers } = await startFleet(6, (index) => (index < 3 ? 'one' : 'two'));
    start({ url });
    await expect.poll(checkers).toEqual(expected);
  },
);

it('without a health path, a target that responds is not checked, until requests wait or it is unhealthy', async () => {
  const watcher = startWatcher({ path: '' });
  const { target } = watcher;
  let isResponding = true;
  const responses = setInterval(() => (target.hasResponded ||= isResponding), 1);
  onTestFinished(() => clearInterval(responses));
  await until('the target is being used', () => watcher.checks >= 1);
  await sleep(bounds.healthPauseMs);
  const { checks } = watcher;
  watcher.result = 'down';
  for (let times = 0; times < 5; times++) await sleep(bounds.healthPauseMs);
  expect(watcher.checks - checks).toBeLessThanOrEqual(1);
  isResponding = false;
  target.inFlight = 1;
  await expect.poll(() => target.health).toBe('down');
  isResponding = true;
  const later = watcher.checks;
  await until('the unhealthy target is checked', () => watcher.checks >= later + 3);
});

it('with a health path, responses do not replace the check', async () => {
  const watcher = startWatcher();
  const responses = setInterval(() => (watcher.target.hasResponded = true), 1);
  onTestFinished(() => clearInterval(responses));
  watcher.result = 'down';
  await expect.poll(() => watcher.target.health).toBe('down');
});
